// The steps of one stage inside a stitched task.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_TASK_STEPS_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_TASK_STEPS_H_

#include <set>

#include "absl/status/status.h"
#include "compiler/schedule/kernel_draft.h"
#include "compiler/schedule/stitch/task_grid.h"

namespace fusion {

inline bool HoldsProducts(InTasks in_tasks) {
  return in_tasks == InTasks::kProducts || in_tasks == InTasks::kFiltering || in_tasks == InTasks::kHalos ||
         in_tasks == InTasks::kSliding;
}

inline bool HoldsWindows(InTasks in_tasks) {
  return in_tasks == InTasks::kWindows || in_tasks == InTasks::kWindowRows || in_tasks == InTasks::kHalos ||
         in_tasks == InTasks::kSliding;
}

// Adds the steps that compute a stage's box (over its physical axes) to `phase`, whose grid binds the axes in the box's
// origins: a register tile where the stage wants one or would run element by element, else one nest. `te`: the stage
// over logical axes. `unsplit`: axes of the stage that no step may cut (Nest::unsplit). Refuses, with a reason, a
// product that has no register tile.
absl::Status AddTaskSteps(const te::Te& te, const PhysicalTe& stage, const te::Box& box, InTasks in_tasks,
                          KernelDraft* draft, movement::Phase* phase, const std::set<int>& unsplit = {});

// The loop nest of a stage over its box in a task.
absl::StatusOr<Nest> NestInTask(const PhysicalTe& stage, const te::Box& box, const std::vector<te::Axis>& grid,
                                const std::set<int>& unsplit, KernelDraft* draft);

// Elements behind a scratch box that the last vector of its last row may read; results made from them are not stored.
int64_t BehindWindows(InTasks in_tasks, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_TASK_STEPS_H_
