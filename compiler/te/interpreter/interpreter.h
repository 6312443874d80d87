// The reference for numbers: evaluates a te program, floats in double precision, and rounds only when a tensor is
// stored in its element type. It is not built for speed, but compiles to a flat register program so that small models
// run in acceptable time. It also runs constant folding.
#ifndef FUSION_COMPILER_TE_INTERPRETER_INTERPRETER_H_
#define FUSION_COMPILER_TE_INTERPRETER_INTERPRETER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/te/program/program.h"

namespace fusion::te {

struct InterpretOptions {
  // If not 0, uses Monte Carlo arithmetic (Parker, Monte Carlo Arithmetic, UCLA CSD-970002, 1997). The result of each
  // floating-point operation is moved at random within the rounding error that a machine working in the expression's
  // own type may make, and overflows where that type does; conversions that C++ leaves undefined give any value.
  // Results that differ between seeds are decided by rounding, and their spread measures the condition of each result.
  // Routines read NaNs of either sign, which no operator defines.
  uint64_t perturb_seed = 0;
  // One operation in 2^n moves at random, n in [0, 63]; the others are rounded to nearest. If every operation moved, a
  // coincidence of many results, such as all summands being exact, would never be seen, although machines produce it.
  int perturb_sparsity = 0;
  // Takes sums and products in the program's order. Otherwise, with perturb_seed, a sum or product that might leave the
  // type's range in another order is NaN, or a sum of finite numbers an infinity, at random, and with every other seed
  // the summands go to two sums at random.
  bool in_order = false;
};

// `inputs` are parallel to program.inputs (a tensor whose TensorInfo carries a constant may be passed as an empty
// Tensor). Returns tensors parallel to program.outputs. INVALID_ARGUMENT when an input's type differs; OUT_OF_RANGE
// when a data-dependent index leaves its declared range.
absl::StatusOr<std::vector<Tensor>> Interpret(const Program& program, const std::vector<Tensor>& inputs,
                                              const InterpretOptions& options = {});

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_INTERPRETER_INTERPRETER_H_
