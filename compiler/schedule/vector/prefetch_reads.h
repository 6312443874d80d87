// Prefetches what is read next. Memory idles while a task computes on what it has: on rows that it goes over several
// times (softmax, normalisations), or on vectors that cost so much (an error function) that the processor does not look
// ahead to the next loads.
#ifndef FUSION_COMPILER_SCHEDULE_VECTOR_PREFETCH_READS_H_
#define FUSION_COMPILER_SCHEDULE_VECTOR_PREFETCH_READS_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion {

// Applies to each argument that tasks read row by row, in more than one step, from beyond the core's own caches. The
// last map that loads its vectors prefetches those of the next task (movement::ReadNext). `phase` will become one of
// `kernel`'s.
void PrefetchNextTask(const DeviceModel& device, const movement::Kernel& kernel, movement::Phase* phase);

// Does the same for a map that runs once over arguments from beyond the core's own caches and costs `cost`
// multiply-adds a point: prefetches the vectors a kilobyte further along its innermost loop.
void PrefetchAhead(const DeviceModel& device, const movement::Kernel& kernel, double cost, movement::Step* step);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_VECTOR_PREFETCH_READS_H_
