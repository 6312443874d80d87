// The passes from the graph that is planned to launches. passes.cc has their order and the reasons for it.
#ifndef FUSION_COMPILER_PIPELINE_PLAN_PASSES_H_
#define FUSION_COMPILER_PIPELINE_PLAN_PASSES_H_

#include "absl/status/status.h"
#include "compiler/pipeline/compilation.h"

namespace fusion::passes {

absl::Status Layout(Compilation* compilation);
// Starts the oracle: later passes over the graph would leave it with wrong nodes.
absl::Status Plan(Compilation* compilation);
// Makes each fusion block with a kernel a launch.
absl::Status Launches(Compilation* compilation);
absl::Status ElideCopies(Compilation* compilation);
absl::Status PlaceLoops(Compilation* compilation);
absl::Status BatchLaunches(Compilation* compilation);
absl::Status ConcurrentLaunches(Compilation* compilation);

// Do tasks share one memory that only one processor sees, and may each have arguments of its own? Elsewhere buffers are
// separate objects, on either side of a bus, and each kernel is a launch of its own.
bool SharesMemory(const Compilation& compilation);

}  // namespace fusion::passes

#endif  // FUSION_COMPILER_PIPELINE_PLAN_PASSES_H_
