// Threadgroup tile: products on devices whose work-items share tasks in work-groups (GPUs). A work-group copies
// K-slices of both operands to its shared memory, and every work-item multiplies a tile of them in registers. Roles are
// read off the index maps as in register_tile.h, so that products, batched products and convolutions (as products over
// pixels) are one case. Arithmetic on one operand alone (a cast, an activation, the border of a window) is done during
// the copy.
#ifndef FUSION_COMPILER_SCHEDULE_THREADGROUP_THREADGROUP_TILE_H_
#define FUSION_COMPILER_SCHEDULE_THREADGROUP_THREADGROUP_TILE_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/threadgroup/threadgroup_shape.h"
#include "compiler/schedule/tile/register_tile.h"

namespace fusion {

// Turns the reduction into one phase and adds scratch buffers and packed constants to the kernel. With TileHome::kTask
// the tiles run one after another in a task, and an operand that the task itself has made is read where it lies.
// Refuses, with a reason, a reduction that is no sum of f32 products of two operands of which one moves with rows and
// one with columns, and one that is too small.
//
// Where the device multiplies fragments of the operands' type (tensor cores), K-slices keep that type, each row or
// column of a slice lies along the reduction, and the tile consists of fragments. Operands that a device multiplies
// where they lie (wgmma) are copied in layout blocks, and the work-group has as many work-items as the instruction
// needs.
//
// Choices:
// - "threadgroup": whether to use this tile at all;
// - "fragments": whether to multiply fragments, and which of those that the device has;
// - "shape": one of RankThreadgroupShapes;
// - "k_slice": how many reduction steps a K-slice has;
// - "buffers": whether one K-slice is copied while another is multiplied, where the device has asynchronous copies.
absl::StatusOr<movement::Phase> ThreadgroupTilePhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel,
                                                     AxisSource* axes, ChoiceLog* choices,
                                                     TileHome home = TileHome::kGrid);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_THREADGROUP_THREADGROUP_TILE_H_
