// The passes over the kernels of all programs of a bundle. passes.cc has their order and the reasons for it.
#ifndef FUSION_COMPILER_PIPELINE_BUNDLE_PASSES_H_
#define FUSION_COMPILER_PIPELINE_BUNDLE_PASSES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/pipeline/compilation.h"

namespace fusion::passes {

// Makes the kernels of all programs read constants in as few packings as their time allows (share_packings.h).
absl::Status SharePackings(absl::Span<Compilation> programs);
// Drops the plain copy of a constant that another kernel has packed (hold_once.h).
absl::Status HoldOnce(absl::Span<Compilation> programs);

// Can the device run several kernels, or a loop, inside of a launch?
bool MayJoinLaunches(const Compilation& compilation);
// Makes loops of launches, and the kernels of a subprogram, one launch (join_launches.h).
absl::Status JoinLaunches(absl::Span<Compilation> programs);

}  // namespace fusion::passes

#endif  // FUSION_COMPILER_PIPELINE_BUNDLE_PASSES_H_
