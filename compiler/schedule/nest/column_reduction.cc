#include "compiler/schedule/nest/column_reduction.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/cost/caches.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/tile/tile_operands.h"
#include "compiler/schedule/vector/vectorize.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

// Columns of a row; the sums of fewer columns stay in registers.
constexpr int64_t kLeastColumns = 256;
// The sums of a task's columns take one part in kCacheShare of the nearest cache.
constexpr int64_t kCacheShare = 2;
// Rows whose elements are added before a sum is stored again, and the fewest rows of a task.
constexpr int64_t kMostRowsAtOnce = 4, kLeastRows = 64;
// A bundle may run on more threads than it was planned for.
constexpr int64_t kLeastTasks = 4;

// Does the body read each element of some tensor of at least `least_bytes` once, contiguously along `columns`?
// Constants do not count: a register tile has them packed in the order in which it reads them.
bool ReadsOnce(const Nest& nest, const Axis& columns, int64_t least_bytes, const DeviceModel& device,
               const movement::Kernel& kernel) {
  bool once = false, possible = true;
  const double reads = Extent(nest.axes) * Extent(nest.reduction->axes);
  te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
    if (node.kind != te::ScalarKind::kLoad) return;
    const Index& address = node.indices[0];
    const movement::Buffer& buffer = kernel.buffers[node.tensor];
    if (address.HasLoad()) possible = false;
    if (buffer.is_constant || movement::SizeBytes(buffer) < least_bytes) return;
    bool all = te::ClassifyLanes(address, columns, device.vector_bytes / 4) == te::LaneAccess::kContiguous;
    for (const std::vector<Axis>* some : {&nest.axes, &nest.reduction->axes}) {
      for (const Axis& axis : *some) all = all && address.UsesAxis(axis.id);
    }
    // Windows that overlap move with all axes, too, and find each element again and again.
    once = once || (all && reads <= static_cast<double>(buffer.elements));
  });
  return once && possible;
}

// Columns whose sums stay in the nearest cache. All tasks take the same number of columns.
int64_t ColumnsOfATask(int64_t columns, const DeviceModel& device) {
  const int64_t most = NearestCacheBytes(device) / kCacheShare / 4, vector = device.vector_bytes / 4;
  const int64_t blocks = (columns + most - 1) / most, each = (columns + blocks - 1) / blocks;
  return (each + vector - 1) / vector * vector;
}

// The number of parts into which the rows are cut where the other axes make too few tasks.
int64_t PartsOfRows(int64_t tasks, int64_t rows, const DeviceModel& device) {
  const int64_t wanted = std::max(kLeastTasks, 2 * Units(device));
  int64_t parts = 1;
  while (tasks * parts < wanted && rows % (2 * parts) == 0 && rows / (2 * parts) >= kLeastRows) {
    parts *= 2;
  }
  return parts;
}

Nest Substituted(Nest nest, const Axis& axis, const Index& by) {
  nest.Substitute([&](const Axis& each) { return each.id == axis.id ? &by : nullptr; });
  return nest;
}

// Is the nest a plain sum of which a task can keep the columns near, and worth that?
bool IsColumnSum(const Nest& nest, SummedRows rows, const DeviceModel& device, const movement::Kernel& kernel) {
  if (!StrategyOf(device).column_sums || !nest.reduction || nest.reduction->kind != te::ReductionKind::kSum ||
      nest.axes.empty()) {
    return false;
  }
  const bool plain = nest.reduction->acc == DType::kF32 && nest.reduction->pred.empty() && nest.padding.empty() &&
                     nest.limits.empty() && nest.mask_limit < 0 && nest.stores.size() == 1 && nest.then.size() <= 1 &&
                     !nest.reduction->axes.empty();
  const bool far = rows == SummedRows::kBeyondCaches;
  const int64_t least_columns = far ? kLeastColumns : device.vector_bytes / 4;
  return plain && nest.axes.back().extent >= least_columns &&
         ReadsOnce(nest, nest.axes.back(), far ? LargestPrivateBytes(device) : 0, device, kernel);
}

// The nest with its columns in tiles, and its rows in parts where there are too few tasks.
struct Tiled {
  Nest nest;
  std::vector<Axis> grid;
  int64_t others = 1;   // results beside the columns
  int64_t block = 0;    // columns of a task
  Axis number, column;  // of the tile, and in it
  int64_t parts = 1;    // of the rows
  Axis part;
  Index at;  // the column of the nest: number · block + column
};

Tiled CutIntoTiles(const Nest& nest, const DeviceModel& device, AxisSource* axes) {
  const Axis columns = nest.axes.back();
  Tiled cut;
  cut.block = ColumnsOfATask(columns.extent, device);
  cut.number = axes->New((columns.extent + cut.block - 1) / cut.block);
  cut.column = axes->New(cut.block);
  cut.at = Index(cut.number) * cut.block + Index(cut.column);
  cut.nest = Substituted(nest, columns, cut.at);
  cut.grid.assign(nest.axes.begin(), nest.axes.end() - 1);
  for (const Axis& axis : cut.grid) cut.others *= axis.extent;
  const Axis first = cut.nest.reduction->axes[0];
  cut.parts = PartsOfRows(cut.others * cut.number.extent, first.extent, device);
  cut.part = axes->New(cut.parts);
  const Axis of_part = axes->New(first.extent / cut.parts);
  if (cut.parts > 1) {
    cut.nest = Substituted(std::move(cut.nest), first, Index(cut.part) * of_part.extent + Index(of_part));
    cut.nest.reduction->axes[0] = of_part;
    cut.grid.push_back(cut.part);
  }
  cut.grid.push_back(cut.number);
  return cut;
}

// Sets a task's sums, in buffer `near`, to zero.
Nest ZeroOf(const Nest& nest, const Tiled& cut, int near) {
  const int64_t columns = nest.axes.back().extent;
  Nest zero;
  zero.label = nest.label;
  zero.axes = {cut.column};
  zero.body = {te::Imm(DType::kF32, 0)};
  zero.stores = {{near, Index(cut.column)}};
  zero.store_types = {DType::kF32};
  if (columns % cut.block != 0) zero.limits[cut.column.id] = Index(columns) - Index(cut.number) * cut.block;
  return zero;
}

// Adds the task's rows to `sum`, several at once. `like`: a nest over the task's columns that stores where sums lie.
Nest AdditionOf(const Nest& like, const Tiled& cut, const Scalar& sum, AxisSource* axes) {
  Nest add = like;
  add.axes = cut.nest.reduction->axes;
  const Axis row = add.axes.back();
  int64_t at_once = kMostRowsAtOnce;
  while (row.extent % at_once != 0) at_once /= 2;
  add.axes.back() = axes->New(row.extent / at_once);
  Scalar total = sum;
  for (int64_t k = 0; k < at_once; ++k) {
    const Index here = Index(add.axes.back()) * at_once + Index(k);
    const auto map = [&](const Axis& axis) { return axis.id == row.id ? &here : nullptr; };
    total = total + te::Cast(DType::kF32, te::Substitute(cut.nest.body[0], map));
  }
  add.axes.push_back(cut.column);
  add.body = {total};
  return add;
}

// Stores the sums of all rows, with what follows them.
Nest ResultOf(const Nest& like, const Tiled& cut, const Scalar& sum) {
  Nest result = like;
  const std::vector<Scalar>& then = cut.nest.then;
  result.body = {then.empty() ? sum : te::MapAccs(then[0], [&](const Scalar&) { return sum; })};
  result.stores = cut.nest.stores;
  result.store_types = cut.nest.store_types;
  return result;
}

// Stores the sums of a part of the rows in buffer `partial`. `rest` becomes the nest that adds the parts.
Nest PartialOf(const Nest& like, const Nest& nest, const Tiled& cut, const Scalar& sum, int partial,
               std::optional<Nest>* rest) {
  std::vector<Index> coordinates = {Index(cut.part)};
  std::vector<int64_t> extents = {cut.parts};
  for (const Axis& axis : nest.axes) {
    coordinates.push_back(Index(axis));
    extents.push_back(axis.extent);
  }
  const Index address = te::Linearize(coordinates, extents);
  *rest = nest;
  (*rest)->reduction->axes = {cut.part};
  (*rest)->body = {te::Load(partial, DType::kF32, {address})};
  const int columns = nest.axes.back().id;
  Nest result = like;
  result.body = {sum};
  result.stores = {
      {partial, te::Substitute(address, [&](const Axis& axis) { return axis.id == columns ? &cut.at : nullptr; })}};
  return result;
}

void AddBuffers(const Nest& nest, const Tiled& cut, movement::Kernel* kernel) {
  movement::Buffer buffer;
  buffer.scope = Scope::kBlock;
  buffer.elements = cut.block;
  kernel->buffers.push_back(buffer);
  if (cut.parts == 1) return;
  buffer.scope = Scope::kDevice;
  buffer.elements = cut.parts * cut.others * nest.axes.back().extent;
  kernel->buffers.push_back(buffer);
}

}  // namespace

std::optional<ColumnSums> ReduceColumns(const Nest& nest, SummedRows rows, const DeviceModel& device,
                                        movement::Kernel* kernel, AxisSource* axes, ChoiceLog* choices) {
  if (!IsColumnSum(nest, rows, device, *kernel)) return std::nullopt;
  const Tiled cut = CutIntoTiles(nest, device, axes);
  const int near = static_cast<int>(kernel->buffers.size()), partial = near + 1;
  const Scalar sum = te::Load(near, DType::kF32, {Index(cut.column)});
  ColumnSums sums;
  sums.phase.grid = cut.grid;
  const Nest zero = ZeroOf(nest, cut, near);
  const Nest add = AdditionOf(zero, cut, sum, axes);
  const Nest result = cut.parts == 1 ? ResultOf(zero, cut, sum) : PartialOf(zero, nest, cut, sum, partial, &sums.rest);
  for (const Nest* each : {&zero, &add, &result}) {
    sums.phase.steps.push_back(StepOf(*each, device));
    if (!sums.phase.steps.back().Is<movement::VectorMap>()) return std::nullopt;
  }
  if (rows == SummedRows::kBeyondCaches && choices->Pick("columns", {"together", "each"}) == 1) return std::nullopt;
  AddBuffers(nest, cut, kernel);
  return sums;
}

}  // namespace fusion
