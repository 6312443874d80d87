// The shape of a threadgroup tile: which ways a device has to multiply, and which tiles of results fit its shared
// memory.
#ifndef FUSION_COMPILER_SCHEDULE_THREADGROUP_THREADGROUP_SHAPE_H_
#define FUSION_COMPILER_SCHEDULE_THREADGROUP_THREADGROUP_SHAPE_H_

#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/schedule/threadgroup/multiplier.h"
#include "compiler/schedule/tile/register_tile.h"
#include "compiler/te/program/program.h"
#include "compiler/te/ranges/bounds.h"

namespace fusion {

// The fewest results along either side of a product; below it, copying operands in K-slices costs more than it saves.
constexpr int64_t kMinSide = 8;
// Reduction steps of a K-slice, unless it is a choice.
constexpr int64_t kKSlice = 16;

// The results of a task: the work-items, or teams of them, along rows and columns, and the fragments that each has
// along both.
struct ThreadgroupShape {
  int item_rows = 1, item_columns = 1;
  int rows = 1, columns = 1;
  double cycles = 0;  // of the whole product, for each step of its reduction, in FMAs of a work-item
};

// Ranks shapes for `batches` products of `rows` × `columns` results, with `buffers` K-slices of `k_slice` reduction
// steps in shared memory at once. Returns at most a few shapes that fit a work-group's shared memory, best first. A
// larger tile loads less, but leaves units of the device idle where there are too few tiles. `work_group_size`: of
// other tiles of the kernel; 0: the shape may choose it.
std::vector<ThreadgroupShape> RankThreadgroupShapes(int64_t rows, int64_t columns, int64_t batches, int64_t k_slice,
                                                    int buffers, const DeviceModel& device, const Multiplier& by = {},
                                                    int work_group_size = 0);

// Multiply-adds of a work-group, or what takes as long, for a product over a box of its axes whose tiles run in one
// task. Infinite where it has no such tile.
double ThreadgroupTileWork(const te::Te& te, const te::Box& box, const DeviceModel& device);

// The ways to compute this product. Fragments in registers come first, where the device has them for these operands.
// Multiplying from shared memory comes last, because nobody knows how fast it is before a measurement; its work-group
// may be larger than others, so it needs a kernel of its own.
std::vector<Multiplier> Multipliers(const te::Scalar& product, const DeviceModel& device, TileHome home);

// The operand without the cast that widens it, also inside a border test that gives zero outside; null where it has no
// such cast.
te::Scalar Narrow(const te::Scalar& s, DType narrow);

// A device model limited to one task's share of shared memory.
DeviceModel UnitOf(const DeviceModel& device);

// The number of points of the axes together.
int64_t PointsOf(const std::vector<te::Axis>& axes);

// Does the value move with the axis: through an address, a number made from an index, or a condition?
bool MovesWith(const te::Scalar& s, const te::Axis& axis);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_THREADGROUP_THREADGROUP_SHAPE_H_
