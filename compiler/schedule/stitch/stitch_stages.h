// Schedules several stages as one phase: in each task they run one after another, and what they hand over stays in the
// task's scratch.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_STITCH_STAGES_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_STITCH_STAGES_H_

#include "absl/status/status.h"
#include "compiler/schedule/kernel_draft.h"
#include "compiler/schedule/stitch/task_grid.h"

namespace fusion {

// Adds stages [first, last) of the program as one phase. Refuses with a reason, and then leaves kernel and buffers of
// the draft as they were. `in_tasks`: what tasks may hold beside maps and reductions. The choice "stitch": 1 keeps a
// phase for each stage after all.
absl::Status StitchStages(int first, int last, InTasks in_tasks, KernelDraft* draft);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_STITCH_STAGES_H_
