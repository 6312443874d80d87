// A task that goes over its rows several times (softmax, normalisations) leaves memory idle while it computes, unless
// it asks for the next task's rows meanwhile.
#ifndef FUSION_COMPILER_SCHEDULE_PREFETCH_NEXT_TASK_H_
#define FUSION_COMPILER_SCHEDULE_PREFETCH_NEXT_TASK_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion {

// For each argument that tasks read row by row, from beyond the core's own caches and in more than one step: the last
// map that loads its vectors prefetches the next task's (movement::NextTask). `phase` is one of `kernel`'s to be.
void PrefetchNextTask(const DeviceModel& device, const movement::Kernel& kernel, movement::Phase* phase);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_PREFETCH_NEXT_TASK_H_
