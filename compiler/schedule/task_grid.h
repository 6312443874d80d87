// Which axes of a stitched task's last stage are shared out among the tasks, and in which blocks?
#ifndef FUSION_COMPILER_SCHEDULE_TASK_GRID_H_
#define FUSION_COMPILER_SCHEDULE_TASK_GRID_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/task_boxes.h"

namespace fusion {

// What a stitched task holds besides maps and folds of rows.
enum class InTasks : uint8_t {
  kNoProducts,
  kProducts,
  kFiltering,  // the products of minimal filtering, whose axes are those of its tiles
  kWindows     // folds of windows, as register tiles, on the grid of kNoProducts
};

// Every axis along which no stage is computed twice, a point a task; with products in blocks, as each task reads the
// operands of its products again: blocks grow while that saves time by the device's rates. FAILED_PRECONDITION when too
// few tasks are left for the device.
absl::StatusOr<std::vector<GridAxis>> ChooseGrid(const TaskBoxes& task, InTasks holds, const DeviceModel& device,
                                                 AxisSource* axes);

// What a task may keep: no more than the core's own cache, unless products make it worth more.
int64_t MostScratchBytes(const DeviceModel& device, bool products);

int64_t BoxPoints(const te::Box& box);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TASK_GRID_H_
