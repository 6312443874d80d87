// Chooses which axes of a stitched task's last stage the tasks share out, and in which tiles.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_TASK_GRID_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_TASK_GRID_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/stitch/task_boxes.h"

namespace fusion {

// The steps that a stitched task holds besides maps and reductions of rows.
enum class InTasks : uint8_t {
  kNoProducts,
  kProducts,
  kFiltering,   // the products of minimal filtering, whose axes are those of its tiles
  kWindows,     // reductions of windows, as register tiles, on the grid of kNoProducts
  kWindowRows,  // the same, in tasks of several rows, which copy less of what their windows share
  kHalos,       // products and windows, where each task computes the halos that its windows need
  kSliding      // the same along a loop over rows inside the task (slide_windows.h)
};

// The ways out of having fewer tasks than the device wants.
struct TooFewTasks {
  bool repeat = false;  // tasks also take tiles of an axis along which each repeats a little
  bool accept = false;  // after everything else, few tasks are taken: whoever prices the kernel sees the idle units
};

// Chooses every axis along which no stage is computed twice, with one point for each task. With products the tasks take
// tiles, because each task reads the operands of its products again: tiles grow while that saves time by the device's
// rates. Fails with FAILED_PRECONDITION when too few tasks are left for the device, or when no grid of products fits.
absl::StatusOr<std::vector<GridAxis>> ChooseGrid(const TaskBoxes& task, InTasks holds, const DeviceModel& device,
                                                 AxisSource* axes, TooFewTasks too_few = {});

// Enlarges the tasks of a grid of windows while that saves time by the device's rates: neighbours copy the same rows,
// which is much where few results are computed of them. Returns whether it does.
bool TakeSeveralRows(const TaskBoxes& task, const DeviceModel& device, AxisSource* axes, std::vector<GridAxis>* grid);

// The scratch that a task may keep: no more than the core's own cache, unless products make more of it worthwhile.
int64_t MostScratchBytes(const DeviceModel& device, bool products);

// Is the stage a product that needs a register tile in its task? With halos, windows that no work-group can multiply as
// a tile (depthwise convolutions) are dealt out to its work-items like other reductions.
bool WantsTileInTask(const te::Program& program, const te::Te& te, InTasks holds, const DeviceModel& device);

int64_t BoxPoints(const te::Box& box);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_TASK_GRID_H_
