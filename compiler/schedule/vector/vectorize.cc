#include "compiler/schedule/vector/vectorize.h"

#include <algorithm>

#include "compiler/movement/extreme_reduction.h"
#include "compiler/movement/row_ranges.h"
#include "compiler/movement/transpose.h"
#include "compiler/movement/vector_form.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/tile/tile_form.h"
#include "compiler/te/program/prefix_reduction.h"

namespace fusion {
namespace {

// A row whose rest becomes a vector uses at least one in so many of its lanes.
constexpr int64_t kLeastOfRest = 4;

// The fewest vectors of a row for which lanes are worth the final choice among their results.
constexpr int64_t kLeastVectors = 2;

// The fewest elements, with calls of library functions, for which a single vector is worthwhile.
constexpr int64_t kLeastOfAVector = 3;

}  // namespace

using te::Axis;
using te::Index;
using te::Scalar;

namespace {

struct Loads {
  int contiguous = 0, stepped = 0, strided = 0;
};

// Do all values of `scalars` have a vector form along `axis`? Adds the loads that move with it.
bool Vectorizable(const std::vector<Scalar>& scalars, const Axis& axis, int64_t lanes, Loads* loads) {
  bool vectorizable = true;
  for (const Scalar& s : scalars) {
    const movement::AlongAxis value = movement::AlongAxisOf(s, axis, lanes);
    vectorizable = vectorizable && value.vectorizable;
    loads->contiguous += value.contiguous_loads;
    loads->stepped += value.stepped_loads;
    loads->strided += value.strided_loads;
  }
  return vectorizable;
}

// The same for a reduction, which refuses stepped loads: it settles borders and strides in a copy of the operand
// (CopyWindows).
bool ReducesInVectors(const std::vector<Scalar>& scalars, const Axis& axis, int64_t lanes, int* contiguous_loads) {
  Loads loads;
  const bool vectorizable = Vectorizable(scalars, axis, lanes, &loads);
  *contiguous_loads = loads.contiguous;
  return vectorizable && loads.stepped == 0;
}

// The same for ranges of a row with a body each, where most of the row lies in ranges of whole vectors. Teams of
// work-items reduce rows of one body.
bool RangesReduceInVectors(const Scalar& body, const Axis& axis, const DeviceModel& device) {
  const int64_t lanes = device.vector_bytes / 4;
  const std::vector<movement::RowRange> ranges = movement::RowRangesOf(body, axis);
  if (ranges.size() < 2 || StrategyOf(device).items_of_a_row > 1) return false;
  int64_t in_vectors = 0;
  for (const movement::RowRange& range : ranges) {
    int contiguous = 0;
    if (!ReducesInVectors({range.body}, range.axis, lanes, &contiguous)) return false;
    if (contiguous > 0) in_vectors += range.axis.extent / lanes * lanes;
  }
  return 4 * in_vectors >= 3 * axis.extent;
}

// Is gathering worthwhile, where each lane loads an element from elsewhere (a linear Resize)? It is where the lanes
// share more arithmetic than there are gathered loads.
bool WorthGathering(const std::vector<Scalar>& scalars, const Axis& axis, int64_t lanes) {
  int gathered = 0, operations = 0;
  for (const Scalar& s : scalars) {
    const movement::AlongAxis value = movement::AlongAxisOf(s, axis, lanes);
    if (!value.gatherable) return false;
    gathered += value.gathered_loads;
    operations += value.operations;
  }
  return operations > gathered;
}

// The fewest elements for which a vector is worthwhile, even if most of it is empty.
int64_t LeastExtent(const std::vector<Scalar>& scalars, const DeviceModel& device) {
  const int64_t lanes = device.vector_bytes / 4;
  if (!StrategyOf(device).partial_vectors || !movement::CallsLibrary(scalars)) return lanes / 2;
  return std::min(lanes / 2, std::max(kLeastOfAVector, lanes / 4));
}

bool StoredAlong(const movement::Step& step, const Axis& axis, int64_t lanes) {
  for (size_t o = 0; o < step.stores.size(); ++o) {
    if (movement::LaneKindOf(step.store_types[o]) == movement::LaneKind::kNone) return false;
    if (te::ClassifyLanes(step.stores[o].address, axis, lanes) != te::LaneAccess::kContiguous) return false;
  }
  return true;
}

}  // namespace

void VectorizeMap(const DeviceModel& device, movement::Step* step) {
  const int64_t lanes = device.vector_bytes / 4;
  if (step->loops.empty()) return;
  const int64_t least = LeastExtent(step->body, device);
  if (step->loops.back().axis.extent < std::min(least, lanes / kLeastOfRest)) return;
  const Axis axis = step->loops.back().axis;
  Loads loads;
  if (!StoredAlong(*step, axis, lanes)) return;
  // Masked lanes of a layout block have no element to step to.
  const bool steps = StrategyOf(device).partial_vectors && !step->lane_limit;
  const bool in_vectors = Vectorizable(step->body, axis, lanes, &loads) && (loads.stepped == 0 || steps);
  const auto take_vectors = [&] {
    const bool all_f32 = std::all_of(step->store_types.begin(), step->store_types.end(),
                                     [](DType dtype) { return dtype == DType::kF32; });
    const bool rest_in_vector = loads.stepped > 0 && loads.contiguous == 0 && all_f32;
    if (!rest_in_vector && axis.extent < least) return;
    step->strategy = movement::VectorMap{.axis = axis.id, .rest_in_vector = rest_in_vector};
  };
  if (in_vectors && loads.strided == 0) return take_vectors();
  if (!StrategyOf(device).turned_loads) return;
  const bool one_value = step->stores.size() == 1 && !step->lane_limit && axis.extent >= lanes;
  for (size_t l = step->loops.size() - 1; l-- > 0 && one_value;) {
    const Axis across = step->loops[l].axis;
    if (across.extent < lanes || !movement::CanTranspose(step->body[0], step->store_types[0], axis, across, lanes))
      continue;
    step->strategy = movement::BlockedTranspose{.axis = axis.id, .across_axis = across.id};
    return;
  }
  if (in_vectors) return take_vectors();
  // Masked lanes of a layout block have no element to gather.
  if (!step->lane_limit && axis.extent >= lanes && WorthGathering(step->body, axis, lanes)) {
    step->strategy = movement::VectorMap{.axis = axis.id};
  }
}

bool PrefixStep(const Nest& nest, const DeviceModel& device, movement::Step* step) {
  if (!nest.reduction || nest.stores.size() != 1 || nest.mask_limit >= 0 || !nest.padding.empty()) return false;
  const std::optional<te::PrefixReduction> prefix =
      te::PrefixReductionOf(*nest.reduction, nest.body, nest.axes);
  if (!prefix || nest.limits.count(prefix->axis)) return false;
  *step = PlainStep(nest);
  auto& pass = step->strategy.emplace<movement::PrefixPass>();
  // The loop along which values are passed on goes innermost, so that the grid takes the others.
  const auto along = std::find_if(step->loops.begin(), step->loops.end(),
                                  [&](const movement::Loop& loop) { return loop.axis.id == prefix->axis; });
  std::rotate(along, along + 1, step->loops.end());
  const size_t others = step->loops.size() - 1;
  const int64_t lanes = device.vector_bytes / 4;
  const DType acc = nest.reduction->acc;
  if (others == 0 || !StrategyOf(device).vector_reductions || (acc != DType::kF32 && acc != DType::kI32)) return true;
  const Axis columns = step->loops[others - 1].axis;
  int contiguous = 0, unused = 0;
  if (columns.extent >= lanes && StoredAlong(*step, columns, lanes) &&
      ReducesInVectors({prefix->value}, columns, lanes, &contiguous) &&
      ReducesInVectors(nest.then, columns, lanes, &unused) && contiguous > 0) {
    pass.vector_axis = columns.id;
  }
  return true;
}

movement::Step PlainStep(const Nest& nest) {
  movement::Step step;
  step.label = nest.label;
  for (const Axis& axis : nest.axes) step.loops.push_back(LoopOf(nest, axis));
  step.reduction = nest.reduction;
  step.body = nest.body;
  step.then = nest.then;
  step.stores = nest.stores;
  step.store_types = nest.store_types;
  step.lane_limit = LaneLimitOf(nest);
  return step;
}

movement::Step StepOf(const Nest& nest, const DeviceModel& device) {
  const int64_t lanes = device.vector_bytes / 4;
  movement::Step step = PlainStep(nest);
  if (!nest.reduction) {
    VectorizeMap(device, &step);
    if (auto* transpose = step.As<movement::BlockedTranspose>()) {
      transpose->streaming_stores = nest.streaming_stores && step.store_types[0] == DType::kF32;
    }
    return step;
  }
  if (PrefixStep(nest, device, &step)) return step;
  int contiguous = 0;
  const te::Reduction& reduction = *nest.reduction;
  if (const std::optional<movement::ExtremeReduction> extreme = movement::ExtremeReductionOf(reduction, nest.body)) {
    const Axis& row = reduction.axes.back();
    if (StrategyOf(device).vector_reductions && row.extent >= kLeastVectors * lanes &&
        ReducesInVectors({extreme->value}, row, lanes, &contiguous) && contiguous > 0) {
      step.strategy = movement::RowReduction{row.id};
    }
    return step;
  }
  if (reduction.kind == te::ReductionKind::kGeneral || !reduction.pred.empty() || reduction.axes.empty()) return step;
  if (reduction.acc != DType::kF32 && reduction.acc != DType::kI32) return step;
  // Reduces along the contiguous reduction axis.
  const Axis& inner = reduction.axes.back();
  const int64_t least = movement::CallsLibrary(nest.body) ? LeastExtent(nest.body, device) : lanes;
  if (inner.extent >= least && ReducesInVectors(nest.body, inner, lanes, &contiguous) && contiguous > 0) {
    step.strategy = movement::RowReduction{inner.id};
    return step;
  }
  if (inner.extent >= least && RangesReduceInVectors(nest.body[0], inner, device)) {
    step.strategy = movement::RowReduction{inner.id};
    return step;
  }
  // Reduces along the innermost spatial axis, one vector of results at a time.
  if (!nest.axes.empty() && nest.axes.back().extent % lanes == 0 && !nest.limits.count(nest.axes.back().id)) {
    const Axis& axis = nest.axes.back();
    int unused = 0;
    contiguous = 0;
    if (StoredAlong(step, axis, lanes) && ReducesInVectors(nest.body, axis, lanes, &contiguous) &&
        ReducesInVectors(nest.then, axis, lanes, &unused) && contiguous > 0 && nest.stores.size() == 1 &&
        HasTileForm(nest.body[0])) {
      // The loop strides by vectors itself, so lane_axis may be longer than one vector.
      step.strategy = movement::RegisterTile{.lane_axis = axis.id};
    }
  }
  return step;
}

void MoveLoopsToGrid(movement::Step* step, double cost_per_point, const DeviceModel& device, AxisSource* axes,
                     ChoiceLog* choices, std::vector<Axis>* grid) {
  double cost = cost_per_point;
  for (const movement::Loop& loop : step->loops) cost *= static_cast<double>(loop.axis.extent);
  auto* const tile = step->As<movement::RegisterTile>();
  const int items = StrategyOf(device).items_of_a_row;
  // A task of a register tile is a single work-item's.
  const int64_t in_a_group = items > 1 && tile != nullptr ? device.work_group_size : 1;
  const int64_t own = std::clamp<int64_t>(static_cast<int64_t>(cost * in_a_group / MinTaskCost(device)), 1,
                                          MaxTasks(device) * in_a_group);
  // Alternatives: a single task, which keeps to one thread, and one task for each unit, which is cut least.
  std::vector<int64_t> counts = {own};
  for (const int64_t other : {int64_t{1}, Units(device), own / 4, 4 * own}) {
    if (other >= 1 && std::find(counts.begin(), counts.end(), other) == counts.end()) counts.push_back(other);
  }
  const int64_t wanted = counts[choices->Pick("tasks", counts, NumberLabel, ChoiceKind::kSharing)];
  int64_t tasks = 1;
  // The innermost loop stays for the vectors, unless it is the only one.
  auto* const transpose = step->As<movement::BlockedTranspose>();
  const auto across = [&] { return transpose != nullptr && step->loops.front().axis.id == transpose->across_axis; };
  // The grid has no limits, so that a loop with one stays.
  // A task that a work-group shares has a vector for each work-item, as long as there is one for each unit.
  const auto leaves_items_idle = [&] {
    if (items == 1 || tile != nullptr || step->Is<movement::RowReduction>()) return false;
    int64_t points = 1;
    for (size_t l = 1; l < step->loops.size(); ++l) points *= step->loops[l].axis.extent;
    return tasks >= Units(device) && points < device.work_group_size * device.vector_bytes / 4;
  };
  while (step->loops.size() > 1 && tasks < wanted && !across() && !step->loops.front().limit && !leaves_items_idle()) {
    const Axis axis = step->loops.front().axis;
    tasks *= axis.extent;
    grid->push_back(axis);
    step->loops.erase(step->loops.begin());
  }
  if (tasks >= wanted || (step->loops.size() != 1 && !across())) return;
  const Axis whole = step->loops[0].axis;
  const int64_t parts = std::min<int64_t>((wanted + tasks - 1) / tasks, whole.extent);
  // Chunks are whole cache lines, whatever the element type. Rows that a work-group reduces are lines of their own.
  const bool lanes_of_tile = tile != nullptr && tile->lane_axis == whole.id;
  int64_t together = step->reduction && items > 1 ? std::max(1, device.work_group_size / items) : 64;
  if (in_a_group > 1) together = 1;
  if (lanes_of_tile) together = std::max<int64_t>(together, device.vector_bytes / 4);  // a tile's vectors stay whole
  int64_t chunk = ((whole.extent + parts - 1) / parts + together - 1) / together * together;
  // One limit cannot end a chunk both where the loop ended and where its own limit did.
  const std::optional<te::Index> limit = step->loops[0].limit;
  while (limit && chunk < whole.extent && whole.extent % chunk != 0) chunk += together;
  if (chunk >= whole.extent) return;
  const Axis outer = axes->New((whole.extent + chunk - 1) / chunk);
  const Axis inner = axes->New(chunk);
  const Index split = Index(outer) * chunk + Index(inner);
  auto map = [&](const Axis& axis) -> const Index* { return axis.id == whole.id ? &split : nullptr; };
  movement::SubstituteAxes(step, map);
  movement::Loop loop{inner, std::nullopt};
  if (limit || whole.extent % chunk != 0) loop.limit = limit.value_or(Index(whole.extent)) - Index(outer) * chunk;
  step->loops[0] = loop;
  const auto replace = [&](int* axis) {
    if (*axis == whole.id) *axis = inner.id;
  };
  if (auto* vectors = step->As<movement::VectorMap>()) replace(&vectors->axis);
  if (transpose != nullptr) replace(&transpose->axis), replace(&transpose->across_axis);
  if (tile != nullptr) replace(&tile->lane_axis);
  if (auto* prefix = step->As<movement::PrefixPass>()) replace(&prefix->vector_axis);
  grid->push_back(outer);
}

}  // namespace fusion
