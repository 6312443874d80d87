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
  const double reads = Extent(nest.axes) * Extent(nest.fold->axes);
  te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
    if (node.kind != te::ScalarKind::kLoad) return;
    const Index& address = node.indices[0];
    const movement::Buffer& buffer = kernel.buffers[node.tensor];
    if (address.HasLoad()) possible = false;
    if (buffer.is_constant || movement::SizeBytes(buffer) < least_bytes) return;
    bool all = te::ClassifyLanes(address, columns, device.vector_bytes / 4) == te::LaneAccess::kContiguous;
    for (const std::vector<Axis>* some : {&nest.axes, &nest.fold->axes}) {
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

}  // namespace

std::optional<ColumnSums> SumColumns(const Nest& nest, SummedRows rows, const DeviceModel& device,
                                     movement::Kernel* kernel, AxisSource* axes, ChoiceLog* choices) {
  if (!StrategyOf(device).column_sums || !nest.fold || nest.fold->kind != te::FoldKind::kSum || nest.axes.empty()) {
    return std::nullopt;
  }
  const bool plain = nest.fold->acc == DType::kF32 && nest.fold->pred.empty() && nest.padding.empty() &&
                     nest.limits.empty() && nest.mask_limit < 0 && nest.stores.size() == 1 && nest.then.size() <= 1 &&
                     !nest.fold->axes.empty();
  const Axis columns = nest.axes.back();
  const bool far = rows == SummedRows::kBeyondCaches;
  const int64_t least_columns = far ? kLeastColumns : device.vector_bytes / 4;
  if (!plain || columns.extent < least_columns ||
      !ReadsOnce(nest, columns, far ? LargestPrivateBytes(device) : 0, device, *kernel)) {
    return std::nullopt;
  }
  // Cuts the columns into tiles of `block`, and the rows into parts.
  const int64_t block = ColumnsOfATask(columns.extent, device);
  const Axis number = axes->New((columns.extent + block - 1) / block), column = axes->New(block);
  const Index at = Index(number) * block + Index(column);
  Nest cut = Substituted(nest, columns, at);
  ColumnSums sums;
  sums.phase.grid.assign(nest.axes.begin(), nest.axes.end() - 1);
  int64_t others = 1;
  for (const Axis& axis : sums.phase.grid) others *= axis.extent;
  const Axis first = cut.fold->axes[0];
  const int64_t parts = PartsOfRows(others * number.extent, first.extent, device);
  const Axis part = axes->New(parts), of_part = axes->New(first.extent / parts);
  if (parts > 1) {
    cut = Substituted(std::move(cut), first, Index(part) * of_part.extent + Index(of_part));
    cut.fold->axes[0] = of_part;
    sums.phase.grid.push_back(part);
  }
  sums.phase.grid.push_back(number);

  const int near = static_cast<int>(kernel->buffers.size()), partial = near + 1;
  Nest zero;  // sets a task's sums to zero
  zero.label = nest.label;
  zero.axes = {column};
  zero.body = {te::Imm(DType::kF32, 0)};
  zero.stores = {{near, Index(column)}};
  zero.store_types = {DType::kF32};
  if (columns.extent % block != 0) zero.limits[column.id] = Index(columns.extent) - Index(number) * block;
  const Scalar sum = te::Load(near, DType::kF32, {Index(column)});

  Nest add = zero;
  add.axes = cut.fold->axes;
  const Axis row = add.axes.back();
  int64_t at_once = kMostRowsAtOnce;
  while (row.extent % at_once != 0) at_once /= 2;
  add.axes.back() = axes->New(row.extent / at_once);
  Scalar total = sum;
  for (int64_t k = 0; k < at_once; ++k) {
    const Index here = Index(add.axes.back()) * at_once + Index(k);
    const auto map = [&](const Axis& axis) { return axis.id == row.id ? &here : nullptr; };
    total = total + te::Cast(DType::kF32, te::Substitute(cut.body[0], map));
  }
  add.axes.push_back(column);
  add.body = {total};

  Nest result = zero;
  if (parts == 1) {
    result.body = {cut.then.empty() ? sum : te::MapAccs(cut.then[0], [&](const Scalar&) { return sum; })};
    result.stores = cut.stores;
    result.store_types = cut.store_types;
  } else {
    std::vector<Index> coordinates = {Index(part)};
    std::vector<int64_t> extents = {parts};
    for (const Axis& axis : nest.axes) {
      coordinates.push_back(Index(axis));
      extents.push_back(axis.extent);
    }
    const Index address = te::Linearize(coordinates, extents);
    sums.rest = nest;
    sums.rest->fold->axes = {part};
    sums.rest->body = {te::Load(partial, DType::kF32, {address})};
    result.body = {sum};
    result.stores = {
        {partial, te::Substitute(address, [&](const Axis& axis) { return axis.id == columns.id ? &at : nullptr; })}};
  }
  for (const Nest* each : {&zero, &add, &result}) {
    sums.phase.steps.push_back(StepOf(*each, device));
    if (sums.phase.steps.back().strategy != movement::Strategy::kMapVec) return std::nullopt;
  }
  if (far && choices->Pick("columns", 2) == 1) return std::nullopt;
  movement::Buffer buffer;
  buffer.scope = Scope::kBlock;
  buffer.elements = block;
  kernel->buffers.push_back(buffer);
  if (parts > 1) {
    buffer.scope = Scope::kDevice;
    buffer.elements = parts * others * columns.extent;
    kernel->buffers.push_back(buffer);
  }
  return sums;
}

}  // namespace fusion
