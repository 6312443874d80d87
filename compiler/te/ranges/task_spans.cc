#include "compiler/te/ranges/task_spans.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fusion::te {
namespace {

// More tasks along one axis are not enumerated.
constexpr int64_t kMostTasks = 1 << 12;
// Tasks that take another step than the others. Each of them is a division in the origin, once in a task.
constexpr size_t kMostBorderTasks = 12;

int64_t InTask(const TaskValues& values, size_t task) { return values.values[values.axis ? task : 0]; }

}  // namespace

std::optional<TaskValues> ValuesOf(const Index& index) {
  if (index.IsConstant()) return TaskValues{std::nullopt, {index.constant()}};
  std::vector<Axis> axes;
  CollectAxes(index, &axes);
  if (index.HasLoad() || axes.size() != 1 || axes[0].extent < 1 || axes[0].extent > kMostTasks) return std::nullopt;
  TaskValues result{axes[0], {}};
  for (int64_t task = 0; task < axes[0].extent; ++task) {
    const Index number(task);
    const Index value = Substitute(index, [&](const Axis&) { return &number; });
    if (!value.IsConstant()) return std::nullopt;
    result.values.push_back(value.constant());
  }
  return result;
}

std::optional<Index> IndexOf(const TaskValues& values) {
  const std::vector<int64_t>& at = values.values;
  if (at.empty()) return std::nullopt;
  if (!values.axis || at.size() == 1) return Index(at[0]);
  std::map<int64_t, size_t> steps;  // how many tasks take it
  for (size_t task = 1; task < at.size(); ++task) ++steps[at[task] - at[task - 1]];
  const auto common =
      std::max_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (at.size() - 1 - common->second > kMostBorderTasks) return std::nullopt;
  const auto tasks = static_cast<int64_t>(at.size());
  Index result = Index(at[0]) + Index(*values.axis) * common->first;
  for (int64_t task = 1; task < tasks; ++task) {
    const int64_t more = at[task] - at[task - 1] - common->first;
    // The quotient is 1 from this task on, and 0 before it.
    if (more != 0) result = result + FloorDiv(Index(*values.axis) + Index(tasks - task), tasks) * more;
  }
  return result;
}

bool LiesInside(const Span& span, int64_t extent) {
  const Interval range = span.origin.Range();
  if (range.lo >= 0 && range.hi + span.length <= extent) return true;
  const std::optional<TaskValues> origins = ValuesOf(span.origin);
  return origins && std::all_of(origins->values.begin(), origins->values.end(),
                                [&](int64_t origin) { return origin >= 0 && origin + span.length <= extent; });
}

std::optional<Span> MovedInside(const Span& span, int64_t extent) {
  if (span.length >= extent) return Span{Index(0), extent};
  if (LiesInside(span, extent)) return span;
  std::optional<TaskValues> origins = ValuesOf(span.origin);
  if (!origins) return std::nullopt;
  for (int64_t& origin : origins->values) origin = std::clamp<int64_t>(origin, 0, extent - span.length);
  const std::optional<Index> moved = IndexOf(*origins);
  if (!moved) return std::nullopt;
  return Span{*moved, span.length};
}

std::optional<Span> HullInside(const Span& a, const Span& b, int64_t extent) {
  const std::optional<TaskValues> a_at = ValuesOf(a.origin), b_at = ValuesOf(b.origin);
  if (!a_at || !b_at || (a_at->axis && b_at->axis && a_at->axis->id != b_at->axis->id)) return std::nullopt;
  TaskValues hull{a_at->axis ? a_at->axis : b_at->axis, {}};
  int64_t length = 0;
  for (size_t task = 0; task < std::max(a_at->values.size(), b_at->values.size()); ++task) {
    const int64_t from_a = InTask(*a_at, task), from_b = InTask(*b_at, task);
    const int64_t begin = std::clamp<int64_t>(std::min(from_a, from_b), 0, extent);
    const int64_t end = std::clamp<int64_t>(std::max(from_a + a.length, from_b + b.length), 0, extent);
    hull.values.push_back(begin);
    length = std::max(length, end - begin);
  }
  const std::optional<Index> origin = IndexOf(hull);
  if (!origin) return std::nullopt;
  return MovedInside({*origin, length}, extent);
}

}  // namespace fusion::te
