// Products on devices whose work-items share tasks in groups (GPUs): a group brings slices of both operands into the
// memory that it shares, and every work-item multiplies a tile of them in registers. Roles are read off the index maps
// as in register_tile.h, so that products, batched products and convolutions (as products over pixels) are one case;
// what is computed of an operand alone (a cast, an activation, the border of a window) is computed while it is brought
// in.
#ifndef FUSION_COMPILER_SCHEDULE_GROUP_TILE_H_
#define FUSION_COMPILER_SCHEDULE_GROUP_TILE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest.h"
#include "compiler/schedule/register_tile.h"
#include "compiler/te/bounds.h"

namespace fusion {

// What a group multiplies: elements, or fragments that several work-items hold together.
struct Multiplier {
  movement::FragmentProduct product;
  DType dtype = DType::kF32;  // of the operands' slices
  double fmas = 1;            // of a work-item, that a product of two elements costs
};

// Results of a task: work-items or teams of them along rows and columns, and the fragments of each along each.
struct GroupShape {
  int item_rows = 1, item_columns = 1;
  int rows = 1, columns = 1;
  double cycles = 0;  // of the whole product for each unit of its fold, in FMAs of a work-item
};

// For `rows` × `columns` results, `batches` times, with `buffers` slices of `slice` along the fold at once: shapes that
// fit the memory of a group, best first, no more than a few. A tile loads less the larger it is, and leaves units of
// the device idle where there are too few of them.
std::vector<GroupShape> RankGroupShapes(int64_t rows, int64_t columns, int64_t batches, int64_t slice, int buffers,
                                        const DeviceModel& device, const Multiplier& by = {});

// Multiply-adds, or what takes as long, of a group for a product over a box of its axes, tiles in one task; infinite
// where it has no such tile.
double GroupTileWork(const te::Te& te, const te::Box& box, const DeviceModel& device);

// The fold as one phase, adding block buffers and packed constants to the kernel. In a task its tiles are one after
// another, and an operand that the task itself has made is read where it lies. Refuses, with a reason, what is no sum
// of f32 products of two operands of which one moves with rows and one with columns, and what is too small.
// Where the device multiplies fragments of the operands' type (tensor cores), slices keep that type, each row or column
// of a slice lies along the fold, and the tile is one of fragments. Operands that a device multiplies where they lie
// (wgmma) are brought in as blocks, and the group has as many work-items as that takes.
// Choices: "group", whether at all; "fragments", whether and which of those that a device multiplies; "shape", of
// RankGroupShapes; "slice", how much of the fold at once; "buffers", whether a slice is brought in while another is
// multiplied, which is where the device copies meanwhile.
absl::StatusOr<movement::Phase> GroupTilePhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel,
                                               AxisSource* axes, ChoiceLog* choices, TileHome home = TileHome::kGrid);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_GROUP_TILE_H_
