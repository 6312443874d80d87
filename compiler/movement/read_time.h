// Read times: how long tasks wait for operands that they read more than once.
#ifndef FUSION_COMPILER_MOVEMENT_READ_TIME_H_
#define FUSION_COMPILER_MOVEMENT_READ_TIME_H_

#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Seconds, of all tasks, to read again what loops push out of the core's own caches, from the memory that holds what
// lies between (rereads.h).
struct RereadTime {
  double beside_s = 0;  // prefetched while the step computes
  double apart_s = 0;   // when a load asks for it
};
std::vector<RereadTime> RereadTimes(const Kernel& kernel, const Phase& phase, const DeviceModel& device);  // by step

// The part of reading that a core waits for where nothing is prefetched but by the hardware: all of it if the step
// reads as long as it computes, and less and less where loads are rare.
double ExposedSeconds(double reading_s, double computing_s);

// Seconds, of all tasks, to read operands that no grid axis moves: every task reads all of such an operand, or as many
// elements as a step of it has loads, where values decide which. They come from the level of memory that holds the
// operand; what a step has read is near for the next one. In a task loop, every iteration does so.
double TaskOperandSeconds(const Kernel& kernel, const Phase& phase, const DeviceModel& device);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_READ_TIME_H_
