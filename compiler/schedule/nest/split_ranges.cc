#include "compiler/schedule/nest/split_ranges.h"

#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "compiler/te/scalar/axis_cuts.h"

namespace fusion {

using te::Axis;
using te::Index;
using te::Scalar;

namespace {

// The first condition in the nest that cuts one of its axes.
std::optional<te::AxisCut> FindCut(const Nest& nest) {
  std::optional<te::AxisCut> found;
  for (const Scalar& s : nest.body) {
    te::VisitCuts(s, [&](const te::AxisCut& cut) {
      if (found || cut.at <= 0) return;
      for (const Axis& axis : nest.axes) {
        if (axis.id == cut.axis.id && cut.at < axis.extent) found = cut;
      }
    });
  }
  return found;
}

// The positions on the axis at which a comparison of this axis alone changes its truth.
void CollectCuts(const te::Comparison& c, const Axis& axis, std::set<int64_t>* cuts) {
  if (c.cmp != te::Cmp::kLt && c.cmp != te::Cmp::kGe) return;
  const Index d = c.lhs - c.rhs;
  if (d.parts().size() != 1 || d.parts()[0].term.kind != te::TermKind::kAxis || d.parts()[0].term.axis.id != axis.id) {
    return;
  }
  // step * x + offset < 0 holds below the cut, or from it on.
  const int64_t step = d.parts()[0].coefficient, offset = d.constant();
  const int64_t size = std::abs(step), bound = step > 0 ? -offset : offset + 1;  // size * x < bound, or >= bound
  const int64_t cut = bound <= 0 ? 0 : (bound + size - 1) / size;
  if (cut > 0 && cut < axis.extent) cuts->insert(cut);
}

// The nest over [begin, begin + extent) of an axis.
Nest PartOf(const Nest& nest, const Axis& axis, int64_t begin, int64_t extent, AxisSource* axes) {
  Nest part = nest;
  const Axis fresh = axes->New(extent);
  const Index moved = Index(fresh) + Index(begin);
  for (Axis& a : part.axes) {
    if (a.id == axis.id) a = fresh;
  }
  part.Substitute([&](const Axis& a) { return a.id == axis.id ? &moved : nullptr; });
  return part;
}

}  // namespace

std::vector<Nest> SplitRanges(Nest nest, AxisSource* axes, const std::function<bool(const Nest&)>& worth) {
  if (nest.reduction) return {std::move(nest)};
  std::vector<Nest> done, open = {nest};
  while (!open.empty()) {
    Nest next = std::move(open.back());
    open.pop_back();
    const std::optional<te::AxisCut> cut = FindCut(next);
    if (!cut) {
      done.push_back(std::move(next));
      continue;
    }
    Nest first = PartOf(next, cut->axis, 0, cut->at, axes);
    Nest second = PartOf(next, cut->axis, cut->at, cut->axis.extent - cut->at, axes);
    if (!worth(first) || !worth(second)) return {std::move(nest)};
    open.push_back(std::move(second));
    open.push_back(std::move(first));
  }
  return done;
}

std::vector<Nest> PeelInnermost(Nest nest, AxisSource* axes) {
  constexpr size_t kMostCuts = 6;
  std::set<int64_t> cuts;
  if (!nest.reduction && !nest.axes.empty() && nest.limits.empty() && nest.mask_limit < 0) {
    for (const Scalar& s : nest.body) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (node.kind != te::ScalarKind::kIf) return;
        for (const te::Comparison& c : node.pred) CollectCuts(c, nest.axes.back(), &cuts);
      });
    }
  }
  if (cuts.empty() || cuts.size() > kMostCuts) return {std::move(nest)};
  const Axis axis = nest.axes.back();
  cuts.insert(axis.extent);
  std::vector<Nest> parts;
  int64_t begin = 0;
  for (const int64_t end : cuts) {
    parts.push_back(PartOf(nest, axis, begin, end - begin, axes));
    begin = end;
  }
  return parts;
}

}  // namespace fusion
