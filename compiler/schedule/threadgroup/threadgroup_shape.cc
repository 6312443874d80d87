#include "compiler/schedule/threadgroup/threadgroup_shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/cost/matrix_products.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/threadgroup/k_slices.h"

namespace fusion {
namespace {

using te::Scalar;
using te::ScalarKind;

// Costs relative to an FMA: a load from shared memory (four work-items share a bank's width), and the copy of one
// element of a K-slice from global to shared memory.
constexpr double kSharedLoad = 0.5, kStagedElement = 6;
// Share of the shared memory that one work-group's K-slices may take: two work-groups on a unit hide each other's
// waiting.
constexpr double kMemoryShare = 0.5;
// Share of a work-group's shared memory that K-slices may take beside a task's scratch (task_grid.cc leaves as much).
constexpr double kShareInTask = 0.5;
// A shape that is slower than the best by more than this factor is not worth a measurement.
constexpr double kWorthTrying = 1.6;
constexpr size_t kMostShapes = 6;

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
                                                    int buffers, const DeviceModel& device, const Multiplier& by) {
  const movement::FragmentProduct& one = by.product;
  const int work_group_size = std::max(device.work_group_size, one.work_items);
  const int teams = work_group_size / one.work_items;
  // Registers of a work-item, one element each, for accumulators and for what is multiplied next.
  const int registers = device.vector_registers * device.vector_bytes / 4;
  std::vector<ThreadgroupShape> shapes;
  for (int item_rows = 1; item_rows <= teams; item_rows *= 2) {
    const int item_columns = teams / item_rows;
    if (item_rows > item_columns || 4 * item_rows < item_columns) continue;  // nearly square tiles load least
    for (const int r : {8, 4, 2, 1}) {
      for (const int c : {8, 4, 2, 1}) {
        const int results = r * c * one.rows * one.columns / one.work_items;
        if (results >= registers) continue;
        const int64_t height = int64_t{item_rows} * r * one.rows, width = int64_t{item_columns} * c * one.columns;
        const int64_t bytes = DTypeBytes(by.dtype) * buffers *
                              (KSliceElements(by, k_slice, height, true) + KSliceElements(by, k_slice, width, true));
        if (static_cast<double>(bytes) > kMemoryShare * static_cast<double>(NearestCacheBytes(device))) continue;
        const int64_t row_tiles = (rows + height - 1) / height, column_tiles = (columns + width - 1) / width;
        const auto tasks = static_cast<double>(batches * row_tiles * column_tiles);
        const double units = std::max(1, device.parallel_units);
        const double loads = DTypeBytes(by.dtype) / 4.0 * (r * one.rows + c * one.columns) / one.work_items;
        const double step = results * by.fmas + kSharedLoad * loads +
                            kStagedElement * static_cast<double>(height + width) / work_group_size;
        shapes.push_back({item_rows, item_columns, r, c, step * std::ceil(tasks / units)});
      }
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
