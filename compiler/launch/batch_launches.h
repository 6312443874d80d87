// Launches of one kernel that do not depend on each other become one launch with several sets of arguments, a batch
// (docs/decisions/0024-batches.md): the iterations of an unrolled loop, towers of equal layers, the two directions of a
// recurrence. This is horizontal fusion of whole kernels; Souffle (ASPLOS 2024, section 6.1) does it for expressions.
#ifndef FUSION_COMPILER_LAUNCH_BATCH_LAUNCHES_H_
#define FUSION_COMPILER_LAUNCH_BATCH_LAUNCHES_H_

#include <memory>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/launch/elide_copies.h"

namespace fusion {

enum class BatchKernels { kNone, kThatLeaveUnitsIdle };

// Returns the fusion blocks of each launch, in an order in which everything that a launch reads has been written before
// it. Fusion blocks without a kernel are left out. Kernels that leave units of the device idle when they run alone form
// a batch if together they have enough work to share out. The bytes that a batch writes stay within the device's
// largest cache.
std::vector<std::vector<size_t>> BatchLaunches(const std::vector<std::shared_ptr<const FusionKernel>>& kernels,
                                               const ElidedCopies& elided, const DeviceModel& device,
                                               BatchKernels which = BatchKernels::kThatLeaveUnitsIdle);

}  // namespace fusion

#endif  // FUSION_COMPILER_LAUNCH_BATCH_LAUNCHES_H_
