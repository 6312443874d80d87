#include "compiler/movement/ring_places.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/movement/ring_accesses.h"
#include "compiler/te/ranges/path_conditions.h"
#include "runtime/base/status_macros.h"

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;
using te::Interval;

// Points of an address, in all turns together, that are followed one by one.
constexpr int64_t kMostPoints = int64_t{1} << 20;

using Point = std::map<int, int64_t>;  // the values of axes, by id

int64_t FloorOf(int64_t a, int64_t b) { return a / b - (a % b < 0); }  // b > 0

// The value of an index without loads whose axes all have a value.
int64_t ValueAt(const Index& index, const Point& point) {
  int64_t sum = index.constant();
  for (const Index::Part& part : index.parts()) {
    int64_t value = 0;
    if (part.term.kind == te::TermKind::kAxis) {
      value = point.at(part.term.axis.id);
    } else {
      const int64_t inner = ValueAt(*part.term.inner, point), quotient = FloorOf(inner, part.term.divisor);
      value = part.term.kind == te::TermKind::kFloorDiv ? quotient : inner - quotient * part.term.divisor;
    }
    sum += part.coefficient * value;
  }
  return sum;
}

bool Holds(const te::Comparison& c, const Point& point) {
  const int64_t a = ValueAt(c.lhs, point), b = ValueAt(c.rhs, point);
  switch (c.cmp) {
    case te::Cmp::kLt:
      return a < b;
    case te::Cmp::kGe:
      return a >= b;
    case te::Cmp::kEq:
      return a == b;
    case te::Cmp::kNe:
      return a != b;
  }
  return true;
}

std::vector<Axis> AxesOf(const te::Comparison& c) {
  std::vector<Axis> axes;
  te::CollectAxes(c.lhs, &axes);
  te::CollectAxes(c.rhs, &axes);
  return axes;
}

// The range of x where the comparison holds. PathConditions adds conditions as they are; an address has them multiplied
// by the distance of its elements.
Interval RangeUnder(const Index& x, const te::Comparison& c) {
  Interval range = x.Range();
  const Index difference = c.lhs - c.rhs;
  if (difference.IsConstant()) return range;
  const Index::Part& lead = difference.parts()[0];
  int64_t factor = 0;
  for (const Index::Part& part : x.parts()) {
    if (Index::FromParts(0, {{part.term, 1}}) == Index::FromParts(0, {{lead.term, 1}}) &&
        part.coefficient % lead.coefficient == 0) {
      factor = part.coefficient / lead.coefficient;
    }
  }
  if (factor == 0) return range;
  const Interval rest = (x - difference * factor).Range();  // x = factor · difference + rest
  const bool least = c.cmp == te::Cmp::kEq || c.cmp == (factor > 0 ? te::Cmp::kGe : te::Cmp::kLt);
  const bool most = c.cmp == te::Cmp::kEq || c.cmp == (factor > 0 ? te::Cmp::kLt : te::Cmp::kGe);
  const int64_t strict = c.cmp == te::Cmp::kLt ? -factor : 0;  // the difference is -1 at most
  if (least) range.lo = std::max(range.lo, rest.lo + strict);
  if (most) range.hi = std::min(range.hi, rest.hi + strict);
  return range;
}

Interval RangeUnder(const Index& x, const te::Pred& conditions) {
  te::PathConditions path;
  path.Assume(conditions);
  Interval range = path.RangeOf(x);
  for (const te::Comparison& c : conditions) {
    const Interval one = RangeUnder(x, c);
    range = {std::max(range.lo, one.lo), std::min(range.hi, one.hi)};
  }
  return range;
}

// The planes that places [0, rows) of each are part of. Conditions hold for a place more often than for its quotient,
// from which the part that they limit may have vanished.
Interval PlanesOf(const Index& place, int64_t rows, const te::Pred& conditions) {
  const Interval places = RangeUnder(place, conditions);
  const Interval planes = RangeUnder(te::FloorDiv(place, rows), conditions);
  return {std::max(planes.lo, FloorOf(places.lo, rows)), std::min(planes.hi, FloorOf(places.hi, rows))};
}

// Calls f with the points of the axes, the first of which runs outermost.
absl::Status ForEachPoint(const std::vector<Axis>& axes, const std::function<absl::Status(const Point&)>& f) {
  int64_t points = 1;
  for (const Axis& axis : axes) {
    if (axis.extent == 0) return absl::OkStatus();
    points = axis.extent > kMostPoints / points ? kMostPoints + 1 : points * axis.extent;
    if (points > kMostPoints) return absl::InternalError("has too many points to follow");
  }
  Point point;
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (size_t a = axes.size(); a-- > 0; rest /= axes[a].extent) point[axes[a].id] = rest % axes[a].extent;
    RETURN_IF_ERROR(f(point));
  }
  return absl::OkStatus();
}

// The conditions that these axes decide.
te::Pred DecidedBy(const std::vector<Axis>& axes, const te::Pred& conditions) {
  const auto known = [&](const Axis& axis) {
    return std::any_of(axes.begin(), axes.end(), [&](const Axis& other) { return other.id == axis.id; });
  };
  te::Pred decided;
  for (const te::Comparison& c : conditions) {
    const std::vector<Axis> used = AxesOf(c);
    if (c.lhs.HasLoad() || c.rhs.HasLoad() || !std::all_of(used.begin(), used.end(), known)) continue;
    decided.push_back(c);
  }
  return decided;
}

// The axes, and those with which conditions compare them: these restrict them.
std::vector<Axis> WithCompared(std::vector<Axis> axes, const te::Pred& conditions) {
  const std::vector<Axis> given = axes;
  const auto among = [](const std::vector<Axis>& all, const Axis& axis) {
    return std::any_of(all.begin(), all.end(), [&](const Axis& other) { return other.id == axis.id; });
  };
  for (const te::Comparison& c : conditions) {
    const std::vector<Axis> used = AxesOf(c);
    if (std::none_of(used.begin(), used.end(), [&](const Axis& axis) { return among(given, axis); })) continue;
    for (const Axis& axis : used) {
      if (!among(axes, axis)) axes.push_back(axis);
    }
  }
  return axes;
}

bool Hold(const te::Pred& conditions, const Point& point) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const te::Comparison& c) { return Holds(c, point); });
}

// The range of x, point by point; `otherwise` where there are too many.
Interval FollowedRange(const Index& x, const te::Pred& conditions, const Interval& otherwise) {
  std::vector<Axis> axes;
  te::CollectAxes(x, &axes);
  axes = WithCompared(std::move(axes), conditions);
  const te::Pred decided = DecidedBy(axes, conditions);
  Interval range{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  const absl::Status followed = ForEachPoint(axes, [&](const Point& point) {
    if (!Hold(decided, point)) return absl::OkStatus();
    const int64_t value = ValueAt(x, point);
    range = {std::min(range.lo, value), std::max(range.hi, value)};
    return absl::OkStatus();
  });
  return followed.ok() && range.lo <= range.hi ? range : otherwise;
}

// Does a range that holds anything hold something outside of [0, extent)?
bool Leaves(const Interval& range, int64_t extent) {
  return range.lo <= range.hi && (range.lo < 0 || range.hi >= extent);
}

// Is there no point at which all conditions hold, as far as axes that are compared with each other tell?
bool NeverHold(const te::Pred& conditions) {
  return std::any_of(conditions.begin(), conditions.end(), [&](const te::Comparison& c) {
    const std::vector<Axis> axes = WithCompared(AxesOf(c), conditions);
    const te::Pred decided = DecidedBy(axes, conditions);
    bool holds = false;
    const absl::Status followed = ForEachPoint(axes, [&](const Point& point) {
      holds = holds || Hold(decided, point);
      return absl::OkStatus();
    });
    return followed.ok() && !holds;
  });
}

// The number of the place, counted through all planes, as an index: the address over the pitch. Where the part of the
// address inside its row is seen to stay there, the index is free of it.
Index PlaceOf(const RingAccess& access, int64_t pitch) {
  std::vector<Index::Part> places, inside;
  for (const Index::Part& part : access.address.parts()) {
    if (part.coefficient % pitch == 0) {
      places.push_back({part.term, part.coefficient / pitch});
    } else {
      inside.push_back(part);
    }
  }
  const Index in_row = Index::FromParts(0, std::move(inside));
  Interval range = RangeUnder(in_row, access.conditions);
  // Where a task's columns begin may depend on its number in a way that only its values tell.
  if (FloorOf(access.address.constant() + range.lo, pitch) != FloorOf(access.address.constant() + range.hi, pitch)) {
    range = FollowedRange(in_row, access.conditions, range);
  }
  const int64_t begin = FloorOf(access.address.constant() + range.lo, pitch);
  const bool stays = access.address.constant() + range.hi < (begin + 1) * pitch;
  return stays ? Index::FromParts(begin, std::move(places)) : te::FloorDiv(access.address, pitch);
}

// Checks the accesses of one step.
class PlaceChecker {
 public:
  PlaceChecker(const Kernel& kernel, const Step& step) : kernel_(kernel), step_(step), turn_(*step.turn) {}

  absl::Status Check(const RingAccess& access) {
    const absl::Status status = CheckAccess(access);
    return status.ok() || NeverHold(access.conditions) ? absl::OkStatus() : Refused(access, status.message());
  }

  // Checks that an address stays in its buffer.
  absl::Status CheckElements(const RingAccess& access) const {
    const int64_t has = kernel_.buffers[access.buffer].elements;
    Interval range = RangeUnder(access.address, access.conditions);
    if (Leaves(range, has)) range = FollowedRange(access.address, access.conditions, range);
    if (!Leaves(range, has) || NeverHold(access.conditions)) return absl::OkStatus();
    return Refused(access, absl::StrCat("reaches elements ", range.lo, " to ", range.hi, " of ", has));
  }

  // Every row that is said to be written is written.
  absl::Status CheckWritten() const {
    for (const RingRows& rows : turn_.writes) {
      const Ring& ring = *kernel_.buffers[rows.buffer].ring;
      const auto written = written_.find(rows.buffer);
      for (int64_t number = 0; number < turn_.axis.extent; ++number) {
        const RowRange said = RowsInTurn(rows, turn_, number, ring);
        for (int64_t row = said.first; row < said.last; ++row) {
          if (written != written_.end() && written->second.count({number, row % ring.rows}) > 0) continue;
          return absl::InternalError(absl::StrCat("movement: step '", step_.label, "' says that it writes row ", row,
                                                  " of ring b", rows.buffer, " and does not"));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Refused(const RingAccess& access, absl::string_view why) const {
    return absl::InternalError(
        absl::StrCat("movement: step '", step_.label, "': an address of ring b", access.buffer, " ", why));
  }

  absl::Status CheckAccess(const RingAccess& access) {
    const Buffer& buffer = kernel_.buffers[access.buffer];
    const Ring& ring = *buffer.ring;
    if (access.address.HasLoad()) return absl::InternalError("depends on data");
    const Index place = PlaceOf(access, ring.pitch);
    const int64_t has = buffer.elements / (ring.rows * ring.pitch);
    Interval planes = PlanesOf(place, ring.rows, access.conditions);
    if (Leaves(planes, has)) planes = FollowedRange(te::FloorDiv(place, ring.rows), access.conditions, planes);
    if (Leaves(planes, has)) {
      return absl::InternalError(absl::StrCat("reaches planes ", planes.lo, " to ", planes.hi, " of ", has));
    }
    const Index in_plane = te::Mod(place, ring.rows);
    std::vector<Axis> axes = {turn_.axis};
    te::CollectAxes(in_plane, &axes);
    axes = WithCompared(std::move(axes), access.conditions);
    const te::Pred conditions = DecidedBy(axes, access.conditions);
    return ForEachPoint(axes, [&](const Point& point) {
      if (!Hold(conditions, point)) return absl::OkStatus();
      return Reach(access, point.at(turn_.axis.id), ValueAt(in_plane, point), ring);
    });
  }

  absl::Status Reach(const RingAccess& access, int64_t number, int64_t place, const Ring& ring) {
    for (const RingRows& rows : access.store ? turn_.writes : turn_.reads) {
      if (rows.buffer != access.buffer) continue;
      const RowRange said = RowsInTurn(rows, turn_, number, ring);
      // The first row from said.first on that has this place.
      const int64_t row = said.first + ((place - said.first) % ring.rows + ring.rows) % ring.rows;
      if (row >= said.last) continue;
      if (access.store) written_[access.buffer].insert({number, place});
      return absl::OkStatus();
    }
    return absl::InternalError(absl::StrCat("reaches place ", place, " in turn ", number,
                                            ", which holds none of the rows that it says it ",
                                            access.store ? "writes" : "reads"));
  }

  const Kernel& kernel_;
  const Step& step_;
  const Turn& turn_;
  std::map<int, std::set<std::pair<int64_t, int64_t>>> written_;  // by buffer: turns and places
};

}  // namespace

RowRange RowsInTurn(const RingRows& rows, const Turn& turn, int64_t number, const Ring& ring) {
  const int64_t first = ValueAt(rows.first, {{turn.axis.id, number}});
  return {std::clamp<int64_t>(first, 0, ring.of), std::clamp<int64_t>(first + rows.rows, 0, ring.of)};
}

absl::Status CheckRingPlaces(const Kernel& kernel, const Step& step) {
  PlaceChecker checker(kernel, step);
  for (const RingAccess& access : RingAccessesOf(kernel, step, MaskedLanes::kLeftOut)) {
    RETURN_IF_ERROR(checker.Check(access));
  }
  for (const RingAccess& access : RingAccessesOf(kernel, step, MaskedLanes::kComputed)) {
    RETURN_IF_ERROR(checker.CheckElements(access));
  }
  return checker.CheckWritten();
}

}  // namespace fusion::movement
