// The passes from launches to kernels. passes.cc has their order and the reasons for it.
#ifndef FUSION_COMPILER_PIPELINE_KERNEL_PASSES_H_
#define FUSION_COMPILER_PIPELINE_KERNEL_PASSES_H_

#include "absl/status/status.h"
#include "compiler/pipeline/compilation.h"

namespace fusion::passes {

// Does the budget of the options allow trials of schedules?
bool MayTune(const Compilation& compilation);
absl::Status Tune(Compilation* compilation);
// Takes the kernel of each launch from the oracle.
absl::Status Kernels(Compilation* compilation);

}  // namespace fusion::passes

#endif  // FUSION_COMPILER_PIPELINE_KERNEL_PASSES_H_
