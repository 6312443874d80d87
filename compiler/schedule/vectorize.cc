#include "compiler/schedule/vectorize.h"

#include <algorithm>

#include "compiler/movement/vector_form.h"
#include "compiler/schedule/register_tile.h"
#include "compiler/schedule/task_size.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

}  // namespace

// Does the value of `s` change along the axis? Fills `vectorizable`=false when a varying node has no vector form.
static bool Varies(const Scalar& s, int axis, int64_t lanes, const Axis& axis_full, const movement::Kernel& kernel,
                   bool* vectorizable, int* contiguous_loads) {
  bool varies = false;
  switch (s->kind) {
    case te::ScalarKind::kImm:
      return false;
    case te::ScalarKind::kAcc:
      return true;
    case te::ScalarKind::kFromIndex:
      if (s->index.UsesAxis(axis)) *vectorizable = false;
      return s->index.UsesAxis(axis);
    case te::ScalarKind::kLoad: {
      if (!s->indices[0].UsesAxis(axis)) return false;
      const te::LaneAccess access = te::ClassifyLanes(s->indices[0], axis_full, lanes);
      if (access == te::LaneAccess::kInvariant) return false;
      if (kernel.buffers[s->tensor].dtype != DType::kF32 || access != te::LaneAccess::kContiguous)
        *vectorizable = false;
      ++*contiguous_loads;
      return true;
    }
    case te::ScalarKind::kIf:
      for (const te::Comparison& c : s->pred) {
        if (c.lhs.UsesAxis(axis) || c.rhs.UsesAxis(axis)) {
          *vectorizable = false;
          varies = true;
        }
      }
      break;
    default:
      break;
  }
  for (const Scalar& arg : s->args)
    varies = Varies(arg, axis, lanes, axis_full, kernel, vectorizable, contiguous_loads) || varies;
  if (varies) {
    if (s->dtype != DType::kF32 && s->dtype != DType::kBool) *vectorizable = false;
    if (s->kind == te::ScalarKind::kCast) *vectorizable = false;
    if (s->kind == te::ScalarKind::kOp) {
      if (!movement::HasVectorForm(*s)) *vectorizable = false;
      for (const Scalar& arg : s->args) {
        if (arg->dtype != DType::kF32 && arg->dtype != DType::kBool) *vectorizable = false;
      }
    }
  }
  return varies;
}

movement::Step StepOf(const Nest& nest, const movement::Kernel& kernel, const DeviceModel& device) {
  const int64_t lanes = device.vector_bytes / 4;
  movement::Step step;
  step.label = nest.label;
  for (const Axis& axis : nest.axes) step.loops.push_back({axis, std::nullopt});
  step.fold = nest.fold;
  step.body = nest.body;
  step.then = nest.then;
  step.stores = nest.stores;
  step.store_types = nest.store_types;
  step.lane_mask_index = nest.mask_index;
  step.lane_limit = nest.mask_limit;
  step.strategy = movement::Strategy::kScalar;
  bool all_f32 = true;
  for (DType dtype : nest.store_types) all_f32 = all_f32 && dtype == DType::kF32;
  if (!all_f32) return step;
  bool vectorizable = true;
  int contiguous = 0;
  if (!nest.fold) {
    if (nest.axes.empty() || nest.axes.back().extent < lanes / 2) return step;
    const Axis& axis = nest.axes.back();
    for (const Scalar& s : nest.body) Varies(s, axis.id, lanes, axis, kernel, &vectorizable, &contiguous);
    for (const movement::Store& store : nest.stores) {
      if (te::ClassifyLanes(store.address, axis, lanes) != te::LaneAccess::kContiguous) vectorizable = false;
    }
    if (vectorizable) {
      step.strategy = movement::Strategy::kMapVec;
      step.vec_axis = axis.id;
    }
    return step;
  }
  const te::Fold& fold = *nest.fold;
  if (fold.kind == te::FoldKind::kGeneral || fold.acc != DType::kF32 || !fold.pred.empty() || fold.axes.empty())
    return step;
  // Along the fold's contiguous axis.
  const Axis& inner = fold.axes.back();
  if (inner.extent >= lanes) {
    Varies(nest.body[0], inner.id, lanes, inner, kernel, &vectorizable, &contiguous);
    if (vectorizable && contiguous > 0) {
      step.strategy = movement::Strategy::kRowFold;
      step.vec_axis = inner.id;
      return step;
    }
  }
  // Along the innermost spatial axis, one vector of folds at a time.
  if (!nest.axes.empty() && nest.axes.back().extent % lanes == 0) {
    const Axis& axis = nest.axes.back();
    vectorizable = true;
    contiguous = 0;
    Varies(nest.body[0], axis.id, lanes, axis, kernel, &vectorizable, &contiguous);
    for (const movement::Store& store : nest.stores) {
      if (te::ClassifyLanes(store.address, axis, lanes) != te::LaneAccess::kContiguous) vectorizable = false;
    }
    for (const Scalar& s : nest.then) {
      int unused = 0;
      Varies(s, axis.id, lanes, axis, kernel, &vectorizable, &unused);
    }
    if (vectorizable && contiguous > 0 && nest.stores.size() == 1 && HasTileForm(nest.body[0])) {
      step.strategy = movement::Strategy::kTile;
      step.tile.lane_axis = axis.id;
      // The printer wants lanes of one vector: the loop strides by vectors itself (tile.lane_axis may be longer).
    }
  }
  return step;
}

void MoveLoopsToGrid(movement::Step* step, double cost_per_point, const DeviceModel& device, AxisSource* axes,
                     std::vector<Axis>* grid) {
  double cost = cost_per_point;
  for (const movement::Loop& loop : step->loops) cost *= static_cast<double>(loop.axis.extent);
  const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(cost / MinTaskCost(device)), 1, MaxTasks(device));
  int64_t tasks = 1;
  // The innermost loop stays, for the vectors, unless it is the only one.
  while (step->loops.size() > 1 && tasks < wanted) {
    const Axis axis = step->loops.front().axis;
    tasks *= axis.extent;
    grid->push_back(axis);
    step->loops.erase(step->loops.begin());
  }
  if (tasks >= wanted || step->loops.size() != 1) return;
  const Axis whole = step->loops[0].axis;
  const int64_t parts = std::min<int64_t>((wanted + tasks - 1) / tasks, whole.extent);
  // Chunks of whole cache lines, whatever the element.
  const int64_t chunk = ((whole.extent + parts - 1) / parts + 63) / 64 * 64;
  if (chunk >= whole.extent) return;
  const Axis outer = axes->New((whole.extent + chunk - 1) / chunk);
  const Axis inner = axes->New(chunk);
  const Index split = Index(outer) * chunk + Index(inner);
  auto map = [&](const Axis& axis) -> const Index* { return axis.id == whole.id ? &split : nullptr; };
  for (Scalar& s : step->body) s = te::Substitute(s, map);
  for (Scalar& s : step->then) s = te::Substitute(s, map);
  for (movement::Store& store : step->stores) store.address = te::Substitute(store.address, map);
  if (step->fold) {
    for (te::Comparison& c : step->fold->pred) {
      c.lhs = te::Substitute(c.lhs, map);
      c.rhs = te::Substitute(c.rhs, map);
    }
    for (Scalar& s : step->fold->init) s = te::Substitute(s, map);
  }
  step->lane_mask_index = te::Substitute(step->lane_mask_index, map);
  movement::Loop loop{inner, std::nullopt};
  if (whole.extent % chunk != 0) loop.limit = Index(whole.extent) - Index(outer) * chunk;
  step->loops[0] = loop;
  if (step->vec_axis == whole.id) step->vec_axis = inner.id;
  grid->push_back(outer);
}

}  // namespace fusion
