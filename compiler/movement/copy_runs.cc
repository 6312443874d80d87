#include "compiler/movement/copy_runs.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fusion::movement {
namespace {

struct Stride {
  int axis = -1;
  int64_t step = 0, count = 0;
};

// Joins a loop with the loop `outer` around it, in whose last iteration its limit, `total - length * outer`, cuts it
// short: together they make `total` steps. Returns false where the limit has another form.
bool JoinLimited(const Loop& loop, std::vector<Stride>* strides) {
  const auto of = [&](int axis) {
    return std::find_if(strides->begin(), strides->end(), [&](const Stride& s) { return s.axis == axis; });
  };
  const std::vector<te::Index::Part>& parts = loop.limit->parts();
  if (parts.size() != 1 || parts[0].term.kind != te::TermKind::kAxis) return false;
  const auto inner = of(loop.axis.id), outer = of(parts[0].term.axis.id);
  const int64_t length = -parts[0].coefficient, total = loop.limit->constant();
  if (inner == strides->end() || outer == strides->end() || inner == outer) return false;
  if (length != inner->count || outer->step != length * inner->step) return false;
  if (total > outer->count * length || total <= (outer->count - 1) * length) return false;
  inner->count = total;
  strides->erase(outer);
  return true;
}

using Ranges = std::map<int, std::pair<int64_t, int64_t>>;  // by axis: [from, to)

// Addresses that are visited once each, without a gap between them.
struct Visited {
  int64_t first = 0, count = 0;
};

std::optional<Visited> VisitedBy(const te::Index& address, const Step& step, const Ranges& ranges) {
  Visited visited{address.constant(), 1};
  std::vector<Stride> strides;
  for (const auto& [axis, range] : ranges) {
    Stride stride{axis, 0, range.second - range.first};
    if (!address.AffineIn(axis, &stride.step)) return std::nullopt;
    visited.first += stride.step * range.first;
    if (stride.count != 1) strides.push_back(stride);
  }
  for (const Loop& loop : step.loops) {
    if (loop.limit && !JoinLimited(loop, &strides)) return std::nullopt;
  }
  std::sort(strides.begin(), strides.end(), [](const Stride& a, const Stride& b) { return a.step < b.step; });
  for (const Stride& stride : strides) {
    if (stride.step != visited.count) return std::nullopt;
    visited.count *= stride.count;
  }
  return visited;
}

// Adds the runs that the body copies in these ranges, branch by branch.
bool AddRuns(const Kernel& kernel, const Step& step, const te::Scalar& body, const Ranges& ranges,
             std::vector<CopyRun>* runs) {
  if (body->kind == te::ScalarKind::kIf) {
    const std::optional<te::AxisCut> cut = te::CutOf(body->pred);
    if (!cut || !ranges.count(cut->axis.id)) return false;
    const std::pair<int64_t, int64_t> all = ranges.at(cut->axis.id);
    const int64_t at = std::clamp(cut->at, all.first, all.second);
    Ranges before = ranges, behind = ranges;
    before[cut->axis.id] = {all.first, at};
    behind[cut->axis.id] = {at, all.second};
    return (at == all.first || AddRuns(kernel, step, body->args[0], before, runs)) &&
           (at == all.second || AddRuns(kernel, step, body->args[1], behind, runs));
  }
  const Store& store = step.stores[0];
  if (body->kind != te::ScalarKind::kLoad || body->pad != nullptr) return false;
  const DType dtype = kernel.buffers[body->tensor].dtype;
  if (dtype != kernel.buffers[store.buffer].dtype || dtype != body->dtype) return false;
  const te::Index moved = store.address - body->indices[0];
  const std::optional<Visited> visited = VisitedBy(store.address, step, ranges);
  if (!moved.IsConstant() || !visited) return false;
  runs->push_back({body->tensor, store.buffer, visited->first - moved.constant(), visited->first, visited->count});
  return true;
}

}  // namespace

std::optional<std::vector<CopyRun>> CopyRunsOf(const Kernel& kernel) {
  std::vector<CopyRun> runs;
  for (const Phase& phase : kernel.phases) {
    for (const Step& step : phase.steps) {
      const bool calls = step.Is<RoutineCall>() || step.Is<LibraryCall>();
      if (calls || step.turn || step.reduction || !step.then.empty() || !SharedCopiesOf(step).empty())
        return std::nullopt;
      if (step.lane_limit || StoreLimitOf(step) != nullptr || step.body.size() != 1 || step.stores.size() != 1) {
        return std::nullopt;
      }
      Ranges ranges;
      for (const te::Axis& axis : phase.grid) ranges[axis.id] = {0, axis.extent};
      for (const Loop& loop : step.loops) ranges[loop.axis.id] = {0, loop.axis.extent};
      if (!AddRuns(kernel, step, step.body[0], ranges, &runs)) return std::nullopt;
    }
  }
  return runs;
}

}  // namespace fusion::movement
