// Register tiles: decides which axes of a reduction become the lanes, the adjacent vectors and the rows of an
// accumulator tile, and which operands are packed for it. Roles are read off the index maps (compiler/te/README.md): an
// operand that does not move with the lanes is broadcast, one that does not move with the rows is shared. So matrix
// products, convolutions, depthwise convolutions and pooling are one case.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_REGISTER_TILE_H_
#define FUSION_COMPILER_SCHEDULE_TILE_REGISTER_TILE_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

// Where the loops around the tiles of a product run.
// - kGrid: over the tasks of a phase of their own.
// - kTask: inside one task, beside other steps; the phase that is returned then has no grid.
// - kTaskOrPhase: as kTask, of a product that could be a phase instead; refuses a tile that is worse in a task.
// - kKernel: as kGrid, and the kernel has nothing else.
enum class TileHome { kGrid, kTask, kTaskOrPhase, kKernel };

// Turns a nest with a reduction into the steps and the grid of one phase, adding packed buffers to the kernel. Refuses
// (with a reason) reductions that are no sum, max or min in f32 or i32, or that have no axis for the lanes.
//
// Choices:
// - "lanes" and "rows": which axis;
// - "slide": whether taps that slide along the rows share their vectors;
// - "tile": one of the ranked tile shapes (tile_shape.h);
// - "reduction": which of the reduction's axes runs outermost;
// - "unroll": of the innermost reduction axis;
// - "panel": "own" to each task that shares columns out, or in the order of all columns, of so many vectors;
// - "chunk": rows of a task;
// - "stream": which operand's axes go outermost in the grid;
// - "prefetch".
absl::StatusOr<movement::Phase> TilePhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel,
                                          AxisSource* axes, ChoiceLog* choices, TileHome home = TileHome::kGrid);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_REGISTER_TILE_H_
