// Schedules a chain of stages as one phase whose tasks walk down the rows of their image: the form "windows". Each
// stage computes some rows with each turn of a loop, and rings keep the rows that windows need again.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_SLIDE_WINDOWS_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_SLIDE_WINDOWS_H_

#include "absl/status/status.h"
#include "compiler/schedule/kernel_draft.h"

namespace fusion {

// Adds all stages of the program as one phase. A task computes all rows of its part of the result, and no row of any
// stage twice; tasks share out the axes outside of the rows (batches), and tiles of columns, of which each computes the
// halo. Fails with FAILED_PRECONDITION, naming the tensor, where
// - there are fewer than two stages, one is a routine, or one has results of another type than f32 or of no elements,
// - the kernel returns what a stage in front of the last one makes,
// - no axis of the result slides (PlanRows),
// - a product has no register tile in its task,
// - what a task keeps exceeds its scratch.
//
// Choices: "turn", the rows of the result that a turn computes; "strips", the tiles of columns.
absl::Status SlideWindows(KernelDraft* draft);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_SLIDE_WINDOWS_H_
