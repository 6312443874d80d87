// Memory idles while a task computes on what it has: on rows that it goes over several times (softmax, normalisations),
// or on vectors that cost more than the processor looks ahead (an error function). Unless it asks for what comes next.
#ifndef FUSION_COMPILER_SCHEDULE_PREFETCH_READS_H_
#define FUSION_COMPILER_SCHEDULE_PREFETCH_READS_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion {

// For each argument that tasks read row by row, from beyond the core's own caches and in more than one step: the last
// map that loads its vectors prefetches the next task's (movement::ReadNext). `phase` is one of `kernel`'s to be.
void PrefetchNextTask(const DeviceModel& device, const movement::Kernel& kernel, movement::Phase* phase);

// The same for a map that runs once over arguments from beyond the caches, at `cost` multiply-adds a point: the vectors
// a kilobyte further along its innermost loop.
void PrefetchAhead(const DeviceModel& device, const movement::Kernel& kernel, double cost, movement::Step* step);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_PREFETCH_READS_H_
