// Recognises kernels that do nothing but copy runs of elements: the parts of a Concat that are runs of its result, a
// Slice that is a run of its operand, a Reshape alone.
#ifndef FUSION_COMPILER_MOVEMENT_COPY_RUNS_H_
#define FUSION_COMPILER_MOVEMENT_COPY_RUNS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Elements [from, from + elements) of buffer `source` are copied to [to, to + elements) of `target`, in order.
struct CopyRun {
  int source = -1, target = -1;
  int64_t from = 0, to = 0, elements = 0;
};

// Returns the runs that the steps copy, in any order; nullopt where a step does anything else.
std::optional<std::vector<CopyRun>> CopyRunsOf(const Kernel& kernel);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_COPY_RUNS_H_
