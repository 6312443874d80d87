// Rereads: what a core reads from outside its own caches several times, because between two reads of the same element
// it touches more than they hold.
//
// A load whose address does not use a loop's axis reads the same elements in each iteration of that loop. Between two
// of these reads lies one iteration of the loop. Where everything that an iteration touches fits the core's caches (see
// LeavesPrivateCache), they still hold the elements; else the next level of memory that holds so much serves them
// again. Loops are those of the text: the grid's axes, the step's loops with tiles as wholes, the reduction, and what a
// tile holds in registers.
#ifndef FUSION_COMPILER_MOVEMENT_REREADS_H_
#define FUSION_COMPILER_MOVEMENT_REREADS_H_

#include <cstddef>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// One load's reads in one loop.
struct Reread {
  size_t step = 0;
  int buffer = -1;          // an argument
  double bytes = 0;         // of all tasks
  double footprint = 0;     // bytes that the task touches between two reads
  bool prefetched = false;  // the step brings them into the caches while it computes
};

// The reads of arguments again, by step and load, with the innermost loop first. Operands that no grid axis moves are
// not counted once more for each task, only for the loops inside of it. Empty on devices whose caches the model does
// not know, or whose tasks share memory of a fixed size.
std::vector<Reread> RereadsOf(const Kernel& kernel, const Phase& phase, const DeviceModel& device);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_REREADS_H_
