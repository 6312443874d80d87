// Launches that do not depend on each other may run at the same time, each on some of the units: the branches of a
// fusion block, the heads of a detector, the small kernels beside a large one. FusionStitching (Zheng et al., 2020,
// section 3.1) calls that kernel packing. Here the kernels stay as they are, and the launches are a group whose tasks
// the device shares out together (docs/decisions/0038-concurrent-launches.md).
#ifndef FUSION_COMPILER_LAUNCH_CONCURRENT_LAUNCHES_H_
#define FUSION_COMPILER_LAUNCH_CONCURRENT_LAUNCHES_H_

#include <memory>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/launch/elide_copies.h"

namespace fusion {

enum class GroupLaunches {
  kThatGain,    // by the cost model
  kAllThatMay,  // for tests: whatever does not depend on each other
};

struct LaunchOrder {
  std::vector<std::vector<size_t>> launches;  // the fusion blocks of each, in an order in which they can run
  std::vector<bool> concurrent;               // parallel to `launches`: with the launch in front of it
};

// Groups launches, whose order is one in which they can run. The order changes only where a launch moves forward to
// join a group. A launch joins one if units that would be idle make the two take three tenths less time together than
// apart, and what they touch stays in the caches of the units, or if they take four tenths less: two kernels of one
// task each take half. The bytes that a group writes stay within the device's largest cache.
LaunchOrder GroupConcurrentLaunches(const std::vector<std::shared_ptr<const FusionKernel>>& kernels,
                                    const ElidedCopies& elided, const std::vector<std::vector<size_t>>& launches,
                                    const DeviceModel& device, GroupLaunches which = GroupLaunches::kThatGain);

}  // namespace fusion

#endif  // FUSION_COMPILER_LAUNCH_CONCURRENT_LAUNCHES_H_
