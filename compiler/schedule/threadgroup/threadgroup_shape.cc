#include "compiler/schedule/threadgroup/threadgroup_shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/cost/matrix_products.h"
#include "compiler/movement/work_groups.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/threadgroup/k_slices.h"

namespace fusion {
namespace {

using te::Scalar;
using te::ScalarKind;

// Costs relative to an FMA: an element of a fragment that is loaded from shared memory, the copy of one element of a
// K-slice from global to shared memory, and the barriers and addresses of a K-slice.
constexpr double kSharedLoad = 0.5, kStagedElement = 6, kSliceOverhead = 40;
// Share of the shared memory that one work-group's K-slices may take: two work-groups on a unit hide each other's
// waiting.
constexpr double kMemoryShare = 0.5;
// Share of a work-group's shared memory that K-slices may take beside a task's scratch (task_grid.cc leaves as much).
constexpr double kShareInTask = 0.5;
// A shape that is slower than the best by more than this factor is not worth a measurement.
constexpr double kWorthTrying = 1.6;
constexpr size_t kMostShapes = 6;
// Registers of a work-item beside its results: operands, addresses, copies on their way. A tile of more work-items than
// a unit has registers for, with room for what follows the sums, would spill.
constexpr int64_t kOtherRegisters = 48, kMostOtherRegisters = 96;

// The work-groups of so many work-items with K-slices of `bytes` that a unit runs at once.
int64_t GroupsAtOnce(int64_t work_items, int64_t results, int64_t bytes, const UnitLimits& unit) {
  if (!unit.Known()) return 1;
  const int64_t most =
      std::min({unit.registers / (work_items * (results + kOtherRegisters)),
                unit.shared_bytes / (bytes + unit.reserved_bytes), int64_t{unit.work_items} / work_items});
  return std::clamp<int64_t>(most, 1, unit.work_groups);
}

// The work-group sizes that a tile may have: the device's, and where it is known what a unit keeps, larger ones too,
// whose work-items hide each other's waiting where there are few tiles.
std::vector<int> GroupSizes(const DeviceModel& device, const movement::FragmentProduct& one) {
  const int own = std::max(device.work_group_size, one.work_items);
  if (!device.unit_limits.Known() || one.fragments()) return {own};
  return {own, 2 * own, 4 * own};
}

}  // namespace

int64_t PointsOf(const std::vector<te::Axis>& axes) {
  int64_t extent = 1;
  for (const te::Axis& axis : axes) extent *= axis.extent;
  return extent;
}

Scalar Narrow(const Scalar& s, DType narrow) {
  if (s->kind == ScalarKind::kCast && s->args[0]->dtype == narrow) return s->args[0];
  if (s->kind != ScalarKind::kIf || !te::IsImm(s->args[1], 0)) return nullptr;
  const Scalar inner = Narrow(s->args[0], narrow);
  return inner == nullptr ? nullptr : te::If(s->pred, inner, te::Imm(narrow, 0));
}

std::vector<Multiplier> Multipliers(const Scalar& product, const DeviceModel& device, TileHome home) {
  std::vector<Multiplier> multipliers;
  const bool halves = Narrow(product->args[0], DType::kF16) && Narrow(product->args[1], DType::kF16);
  const DType dtype = halves ? DType::kF16 : DType::kF32;
  const auto add = [&](const MatrixProduct& by) {
    multipliers.push_back({{by.rows, by.columns, by.depth, by.work_items, by.from_memory},
                           dtype,
                           device.fma_f32_flops_per_s / by.flops_per_s});
  };
  const MatrixProduct* matrix = FindMatrixProduct(device, dtype);
  if (matrix != nullptr && matrix->work_items <= device.work_group_size) add(*matrix);
  multipliers.emplace_back();
  const MatrixProduct* from_memory = FindMatrixProduct(device, dtype, /*from_memory=*/true);
  if (from_memory != nullptr && home == TileHome::kKernel) add(*from_memory);
  return multipliers;
}

DeviceModel UnitOf(const DeviceModel& device) {
  DeviceModel unit = device;
  unit.parallel_units = 1;
  unit.unit_limits = {};  // other tasks run beside this one
  unit.memory = {{"", static_cast<int64_t>(kShareInTask * static_cast<double>(NearestCacheBytes(device))), 0, false}};
  return unit;
}

bool MovesWith(const Scalar& s, const te::Axis& axis) {
  bool uses = false;
  te::Visit(s, [&](const te::ScalarNode& node) {
    for (const te::Index& index : node.indices) uses = uses || index.UsesAxis(axis.id);
    if (node.kind == ScalarKind::kFromIndex) uses = uses || node.index.UsesAxis(axis.id);
    for (const te::Comparison& c : node.pred) uses = uses || c.lhs.UsesAxis(axis.id) || c.rhs.UsesAxis(axis.id);
  });
  return uses;
}

std::vector<ThreadgroupShape> RankThreadgroupShapes(int64_t rows, int64_t columns, int64_t batches, int64_t k_slice,
                                                    int buffers, const DeviceModel& device, const Multiplier& by,
                                                    int work_group_size) {
  const std::vector<int> sizes =
      work_group_size > 0 ? std::vector<int>{work_group_size} : GroupSizes(device, by.product);
  const movement::FragmentProduct& one = by.product;
  const double units = std::max(1, device.parallel_units);
  // Registers of a work-item, one element each, for accumulators and for what is multiplied next.
  const int registers = device.vector_registers * device.vector_bytes / 4;
  std::vector<ThreadgroupShape> shapes;
  const auto try_size = [&](int work_group_size, int item_rows) {
    const int item_columns = work_group_size / one.work_items / item_rows;
    if (item_rows > item_columns || 4 * item_rows < item_columns) return;  // nearly square tiles load least
    for (const int r : {8, 4, 2, 1}) {
      for (const int c : {8, 4, 2, 1}) {
        const int results = r * c * one.rows * one.columns / one.work_items;
        if (results >= registers) continue;
        if (device.unit_limits.Known() &&
            int64_t{work_group_size} * (results + kMostOtherRegisters) > device.unit_limits.registers) {
          continue;
        }
        const int64_t height = int64_t{item_rows} * r * one.rows, width = int64_t{item_columns} * c * one.columns;
        const int64_t bytes = DTypeBytes(by.dtype) * buffers *
                              (KSliceElements(by, k_slice, height, true) + KSliceElements(by, k_slice, width, true));
        if (static_cast<double>(bytes) > kMemoryShare * static_cast<double>(NearestCacheBytes(device))) continue;
        const int64_t row_tiles = (rows + height - 1) / height, column_tiles = (columns + width - 1) / width;
        const auto tasks = static_cast<double>(batches * row_tiles * column_tiles);
        const int lanes = device.vector_bytes / 4;
        const double loads = one.fragments() ? kSharedLoad * DTypeBytes(by.dtype) / 4.0 *
                                                   (r * one.rows + c * one.columns) / one.work_items
                                             : movement::SharedLoadOps(r, lanes) + movement::SharedLoadOps(c, lanes);
        const auto depth = static_cast<double>(k_slice);
        // The operations of a work-item for a K-slice, and the time of a unit for those that it runs at once, in FMAs
        // of one work-item of the device's own group.
        const double item = depth * (results * by.fmas + loads +
                                     kStagedElement * static_cast<double>(height + width) / work_group_size);
        const double of_unit = std::ceil(tasks / units);
        const double at_once = std::min<double>(
            of_unit, static_cast<double>(GroupsAtOnce(work_group_size, results, bytes, device.unit_limits)));
        double slice = item * at_once * work_group_size / device.work_group_size;
        if (device.unit_limits.Known()) {
          const double scale = movement::kItemsThatFillAUnit / device.work_group_size;
          slice = std::max(slice + kSliceOverhead * at_once * work_group_size / device.work_group_size,
                           scale * (movement::kSliceLatencyCycles + item));
        }
        shapes.push_back({item_rows, item_columns, r, c, slice / depth * std::ceil(of_unit / at_once)});
      }
    }
  };
  for (const int work_group_size : sizes) {
    for (int item_rows = 1; item_rows * one.work_items <= work_group_size; item_rows *= 2) {
      try_size(work_group_size, item_rows);
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const ThreadgroupShape& a, const ThreadgroupShape& b) { return a.cycles < b.cycles; });
  while (!shapes.empty() && (shapes.size() > kMostShapes || shapes.back().cycles > kWorthTrying * shapes[0].cycles)) {
    shapes.pop_back();
  }
  return shapes;
}

double ThreadgroupTileWork(const te::Te& te, const te::Box& box, const DeviceModel& device) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (te.IsMap() || te.body[0]->kind != ScalarKind::kOp || te.body[0]->op != te::Op::kMul) return kNever;
  int64_t rows = 1, columns = 1, batches = 1;
  for (size_t a = 0; a < te.axes.size(); ++a) {
    const bool by_row = MovesWith(te.body[0]->args[0], te.axes[a]),
               by_column = MovesWith(te.body[0]->args[1], te.axes[a]);
    (by_row == by_column ? batches : by_row ? rows : columns) *= box[a].length;
  }
  if (rows < kMinSide || columns < kMinSide) return kNever;
  const std::vector<ThreadgroupShape> shapes = RankThreadgroupShapes(
      rows, columns, batches, kKSlice, 1, UnitOf(device), Multipliers(te.body[0], device, TileHome::kTask)[0]);
  if (shapes.empty()) return kNever;
  return shapes[0].cycles * device.work_group_size * static_cast<double>(PointsOf(te.reduction->axes));
}

}  // namespace fusion
