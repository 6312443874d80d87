// Plans stages whose windows slide along the rows of an image: a task computes some rows of each stage with every turn
// of a loop, and keeps the rows that later turns need again in rings (movement::Ring), so that it computes no row
// twice. docs/decisions/0069-sliding-windows.md derives the formulas.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_WINDOW_ROWS_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_WINDOW_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/te/program/program.h"

namespace fusion {

// A stage's turn n computes rows [step · n, step · n + step) of its outputs, those that exist, in iteration first + n.
struct StageRows {
  size_t logical = 0;   // the dimension of the outputs that holds the rows
  size_t physical = 0;  // its position among the stage's physical axes
  te::Axis turn;        // numbers the stage's turns
  int64_t step = 1;
  int64_t first = 0;
  int64_t kept = 0;  // rows that the rings of its outputs hold, whole turns or the whole tensor; 0: the last stage
};

// Turn n of `reader` reads rows [step · n + first, step · n + first + rows) of a tensor that `stage` makes, by its
// step.
struct WindowOfRows {
  size_t stage = 0, reader = 0;
  te::TensorId tensor = -1;
  int64_t first = 0, rows = 0;
};

struct RowPlan {
  std::vector<StageRows> stages;
  std::vector<WindowOfRows> windows;
  int64_t iterations = 0;
  bool slides = false;  // a turn reads rows that another turn reads, too, of some tensor
};

// Plans turns of `step` rows along physical axis `rows` of the last of `stages`. Each stage begins as late as its
// readers allow. Fails with FAILED_PRECONDITION, naming the tensor, where
// - a stage is read by none of the others,
// - what a turn reads of a stage is not a number of neighbouring rows that moves by whole rows with each turn, in one
//   dimension, and by as many for each reader,
// - no row of a stage is read, since the windows over it lie in padding.
absl::StatusOr<RowPlan> PlanRows(const te::Program& program, const std::vector<PhysicalTe>& stages,
                                 const LayoutOf& layout_of, size_t rows, int64_t step, AxisSource* axes);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_WINDOW_ROWS_H_
