// The judge of numbers: evaluates a te program one element at a time, floats in double precision, rounding only when a
// tensor is stored in its element type. Slow on purpose; compiled to a flat register program so that small models are
// bearable. Also runs constant folding.
#ifndef FUSION_COMPILER_TE_INTERPRETER_H_
#define FUSION_COMPILER_TE_INTERPRETER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/te/program.h"

namespace fusion::te {

struct InterpretOptions {
  // Not 0: Monte Carlo arithmetic (Parker, Monte Carlo Arithmetic, UCLA CSD-970002, 1997). Each floating-point
  // operation's result is moved at random within the rounding error that a machine working in the expression's own type
  // may make, and overflows where that type does; conversions that C++ leaves undefined give anything. What differs
  // between runs with different seeds is what rounding decides: their spread measures the condition of each result.
  uint64_t perturb_seed = 0;
  // Of 2^n operations one moves at random, n in [0, 63]; the others are rounded to nearest. Where every operation
  // moves, a coincidence of many results, such as all summands being the exact ones, is never seen, though machines
  // bring it about.
  int perturb_sparsity = 0;
  // Sums and products are taken in the program's order. Otherwise a perturbed one that another order might take out of
  // the type's range is NaN at random.
  bool in_order = false;
};

// `inputs` parallel to program.inputs (tensors whose TensorInfo carries a constant may be passed as an empty Tensor).
// Returns tensors parallel to program.outputs. INVALID_ARGUMENT when an input's type differs; OUT_OF_RANGE when a
// data-dependent index leaves its declared range.
absl::StatusOr<std::vector<Tensor>> Interpret(const Program& program, const std::vector<Tensor>& inputs,
                                              const InterpretOptions& options = {});

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_INTERPRETER_H_
