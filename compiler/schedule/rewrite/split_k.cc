#include "compiler/schedule/rewrite/split_k.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/threadgroup/threadgroup_shape.h"
#include "compiler/schedule/threadgroup/threadgroup_tile.h"
#include "compiler/te/ranges/bounds.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;

// Results that a work-item has in a tile of usual size.
constexpr int64_t kResultsPerItem = 16;
// Work-groups that a unit should have, so that they hide each other's waiting for slices.
constexpr int64_t kGroupsOfAUnit = 8;
// The most parts, since each adds partial sums; the least terms of a part, and the least of them along the axis that is
// cut: shorter ones spend their time on copying slices to shared memory.
constexpr int64_t kMostParts = 16, kMinPart = 64, kMinAlong = 16;

// The longest axis of the reduction, which is cut.
Axis& Longest(te::Reduction* reduction) {
  return *std::max_element(reduction->axes.begin(), reduction->axes.end(),
                           [](const Axis& a, const Axis& b) { return a.extent < b.extent; });
}

// The number of parts of the reduction, or 1.
int64_t Parts(te::Te te, const DeviceModel& device) {
  if (!te.reduction || te.reduction->kind != te::ReductionKind::kSum || te.reduction->acc != DType::kF32 ||
      !te.reduction->pred.empty() || te.outputs.size() != 1) {
    return 1;
  }
  te::Box box;
  int64_t results = 1;
  for (const Axis& axis : te.axes) {
    box.push_back({Index(0), axis.extent});
    results *= axis.extent;
  }
  if (!std::isfinite(ThreadgroupTileWork(te, box, device))) return 1;
  const int64_t tile = kResultsPerItem * device.work_group_size, tiles = (results + tile - 1) / tile;
  const int64_t extent = Longest(&*te.reduction).extent, terms = PointsOf(te.reduction->axes);
  int64_t parts = 1;
  while (2 * parts * tiles <= kGroupsOfAUnit * device.parallel_units && 2 * parts <= kMostParts &&
         extent % (2 * parts) == 0 && extent / (2 * parts) >= kMinAlong && terms / (2 * parts) >= kMinPart) {
    parts *= 2;
  }
  return parts;
}

}  // namespace

std::optional<te::Program> SplitK(te::Program program, const DeviceModel& device) {
  if (!StrategyOf(device).split_k) return std::nullopt;
  bool spread = false;
  for (te::Te& te : std::exchange(program.tes, {})) {
    const int64_t parts = Parts(te, device);
    if (parts == 1) {
      program.tes.push_back(std::move(te));
      continue;
    }
    spread = true;
    te::Te part = te;
    const Axis number = program.NewAxis(parts);
    std::map<int, Index> renamed;
    for (Axis& axis : part.axes) {
      const Axis fresh = program.NewAxis(axis.extent);
      renamed[axis.id] = Index(fresh);
      axis = fresh;
    }
    Axis& k = Longest(&*part.reduction);
    const Axis shorter = program.NewAxis(k.extent / parts);
    renamed[k.id] = Index(number) * shorter.extent + Index(shorter);
    k = shorter;
    const auto map = [&](const Axis& axis) -> const Index* {
      auto it = renamed.find(axis.id);
      return it == renamed.end() ? nullptr : &it->second;
    };
    for (te::Scalar& s : part.body) s = te::Substitute(s, map);
    part.then.clear();
    part.axes.insert(part.axes.begin(), number);
    Shape shape;
    for (const Axis& axis : part.axes) shape.push_back(axis.extent);
    const te::TensorId partial = program.AddTensor("partial", te.reduction->acc, shape, te::Role::kIntermediate);
    part.outputs = {partial};
    program.tes.push_back(std::move(part));

    const Axis added = program.NewAxis(parts);
    std::vector<Index> here = {Index(added)};
    for (const Axis& axis : te.axes) here.push_back(Index(axis));
    te.reduction->axes = {added};
    te.body = {te::Load(partial, te.reduction->acc, here)};
    program.tes.push_back(std::move(te));
  }
  if (!spread) return std::nullopt;
  return program;
}

}  // namespace fusion
