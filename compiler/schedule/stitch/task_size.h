// How much work makes a task on a device. Only facts that are part of the device's fingerprint enter here, never a
// measured rate: what is built for a device must not change from one registration to the next.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_TASK_SIZE_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_TASK_SIZE_H_

#include <cstdint>

#include "compiler/cost/device_model.h"

namespace fusion {

// Limits of work, in FMAs of one element. A task below MinTaskCost is dominated by its call, about a thousand vector
// FMAs on any core; a kernel below WorthSharing is not worth waking another core for.
double MinTaskCost(const DeviceModel& device);
double WorthSharing(const DeviceModel& device);

// Cores, or what else works at the same time; at least 1.
int64_t Units(const DeviceModel& device);
// The units that may run the bundle, at least 2: it may get more threads than it was planned for.
int64_t LikelyUnits(const DeviceModel& device);

// WantedTasks are enough that all cores finish at about the same time; more than MaxTasks only add calls.
int64_t WantedTasks(const DeviceModel& device);
int64_t MaxTasks(const DeviceModel& device);

// Sizes of the cache next to the registers, and of the largest one that a core has to itself.
int64_t NearestCacheBytes(const DeviceModel& device);
int64_t PrivateCacheBytes(const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_TASK_SIZE_H_
