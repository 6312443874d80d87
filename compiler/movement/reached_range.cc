#include "compiler/movement/reached_range.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;
using te::Interval;

Index With(const Index& x, int axis, const Index& value) {
  return te::Substitute(x, [&](const Axis& a) { return a.id == axis ? &value : nullptr; });
}

// Adds the values of an axis around the one at which `x`, affine in it and in nothing else, becomes `target`.
void AddCrossing(const Index& x, const Axis& axis, int64_t target, std::set<int64_t>* values) {
  int64_t slope = 0;
  if (x.parts().size() != 1 || !x.AffineIn(axis.id, &slope) || slope == 0) return;
  const int64_t at = (target - x.constant()) / slope;
  for (int64_t value = at - 1; value <= at + 1; ++value) {
    if (value >= 0 && value < axis.extent) values->insert(value);
  }
}

void Join(const std::optional<Interval>& other, std::optional<Interval>* range) {
  if (!other) return;
  if (!*range) *range = other;
  (*range)->lo = std::min((*range)->lo, other->lo);
  (*range)->hi = std::max((*range)->hi, other->hi);
}

// `limited`: the loops that still have a limit.
std::optional<Interval> Reached(Index address, std::vector<Loop> limited) {
  // Loops whose limit is a number are shorter, here and in the limits of others.
  for (size_t i = 0; i < limited.size();) {
    if (!limited[i].limit->IsConstant()) {
      ++i;
      continue;
    }
    const Axis axis = limited[i].axis;
    const int64_t extent = std::min(axis.extent, limited[i].limit->constant());
    if (extent <= 0) return std::nullopt;
    limited.erase(limited.begin() + i);
    const Index shorter = extent == 1 ? Index(0) : Index(Axis{axis.id, extent});
    address = With(address, axis.id, shorter);
    for (Loop& loop : limited) loop.limit = With(*loop.limit, axis.id, shorter);
    i = 0;
  }
  if (limited.empty()) return address.Range();
  std::vector<Axis> axes;
  for (const Loop& loop : limited) te::CollectAxes(*loop.limit, &axes);
  const auto free = std::find_if(axes.begin(), axes.end(), [&](const Axis& axis) {
    return std::none_of(limited.begin(), limited.end(), [&](const Loop& loop) { return loop.axis.id == axis.id; });
  });
  if (free == axes.end()) return std::nullopt;
  // The address at its end, as a function of this axis, is linear between the values at which a loop begins to end
  // early or to run at all.
  std::set<int64_t> values = {0, free->extent - 1};
  for (const Loop& loop : limited) {
    AddCrossing(*loop.limit, *free, loop.axis.extent, &values);
    AddCrossing(*loop.limit, *free, 1, &values);
  }
  std::optional<Interval> range;
  for (int64_t value : values) {
    std::vector<Loop> at = limited;
    for (Loop& loop : at) loop.limit = With(*loop.limit, free->id, Index(value));
    Join(Reached(With(address, free->id, Index(value)), std::move(at)), &range);
  }
  return range;
}

}  // namespace

std::optional<Interval> ReachedRange(const Index& address, const std::vector<Loop>& loops) {
  std::vector<Loop> limited;
  std::copy_if(loops.begin(), loops.end(), std::back_inserter(limited),
               [](const Loop& l) { return l.limit.has_value(); });
  return Reached(address, std::move(limited));
}

}  // namespace fusion::movement
