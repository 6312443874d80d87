// Sequential loops inside a task (TaskLoop in kernel.h), and the rings that keep rows from one iteration to the next.
// Verify holds every kernel against this check.
#ifndef FUSION_COMPILER_MOVEMENT_TASK_LOOP_H_
#define FUSION_COMPILER_MOVEMENT_TASK_LOOP_H_

#include "absl/status/status.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Checks the rings among a kernel's buffers: they live in a task's scratch, and have whole planes.
absl::Status CheckRings(const Kernel& kernel);

// Checks the task loops of a phase by following their iterations. INTERNAL, in words for people, unless
// - each step inside a loop has a turn within the loop's iterations, numbered by an axis of its own, and no step
// outside
//   of a loop has one; no step is a routine, a library call or part of a row nest;
// - each row of a ring that an iteration reads was written by this or an earlier iteration, and no other row was
// written
//   to its place since;
// - addresses of rings reach the rows that their steps say, and no others (ring_places.h);
// - rings are used inside one loop alone, and no step reads a ring that it writes;
// - other scratch that a step of the loop writes is read by later steps of the loop alone, and only in iterations in
//   which it is written;
// - no step of the loop reads an argument that another step of the loop writes.
absl::Status CheckTaskLoops(const Kernel& kernel, const Phase& phase);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_TASK_LOOP_H_
