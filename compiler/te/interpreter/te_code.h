// Compiles one te into a register program for lanes.h.
#ifndef FUSION_COMPILER_TE_INTERPRETER_TE_CODE_H_
#define FUSION_COMPILER_TE_INTERPRETER_TE_CODE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/te/interpreter/lanes.h"

namespace fusion::te {

// Runs as: once; for each strip of up to kLanes points { axes; pre; init; for each reduction point { reduction axes;
// step }; post }.
struct TeCode {
  std::vector<lanes::Inst> once, pre, init, step, post;
  int num_doubles = 0, num_ints = 1;
  struct AxisRegister {
    int reg = 0;  // kZeroRegister: not used
    int64_t extent = 1;
    int64_t stride = 1;  // for a spatial axis: in the row-major domain
  };
  std::vector<AxisRegister> axes, reduction_axes;
  struct Output {
    TensorId tensor = -1;
    int reg = 0;
  };
  std::vector<Output> outputs;
};

struct TeCodeOptions {
  bool perturb = false;   // in Monte Carlo arithmetic
  bool in_order = false;  // see InterpretOptions
  bool two_sums = false;  // each sum is taken as two, whose summands are drawn at random; not in order
};

// The te belongs to a verified program. INTERNAL when an operation is not defined on its type.
absl::StatusOr<TeCode> CompileTe(const Program& program, const Te& te, const TeCodeOptions& options = {});

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_INTERPRETER_TE_CODE_H_
