// The kernels that must run before a kernel.
#ifndef FUSION_COMPILER_LAUNCH_KERNEL_ORDER_H_
#define FUSION_COMPILER_LAUNCH_KERNEL_ORDER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "compiler/kernels/fusion_kernel.h"
#include "compiler/launch/elide_copies.h"

namespace fusion {

// Returns, for each fusion block, the earlier fusion blocks that write what it reads, wholly or in part.
std::vector<std::set<size_t>> Dependencies(const std::vector<std::shared_ptr<const FusionKernel>>& kernels,
                                           const ElidedCopies& elided);

// Which launches wait for which. A launch is several fusion blocks.
struct LaunchGraph {
  std::vector<std::set<size_t>> after;  // of each launch, those that wait for it
  std::vector<size_t> waits;            // of each launch, how many it waits for
};
// `before` is what Dependencies returns.
LaunchGraph LaunchGraphOf(const std::vector<std::set<size_t>>& before,
                          const std::vector<std::vector<size_t>>& launches);

// Bytes of the results and temporaries of a kernel.
int64_t WrittenBytes(const FusionKernel& fusion_kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_LAUNCH_KERNEL_ORDER_H_
