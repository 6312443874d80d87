#include "compiler/movement/reached_range.h"

#include <algorithm>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;
using te::Interval;

Interval Of(const Index& address, const std::vector<Loop>& loops) {
  const std::optional<Interval> range = ReachedRange(address, loops);
  return range ? *range : Interval{1, 0};
}

// The same by running the loops; `outer` is bound around them.
std::optional<Interval> ByRunning(const Index& address, const std::vector<Loop>& loops, const Axis& outer) {
  std::optional<Interval> range;
  std::map<int, int64_t> bound;
  const auto value = [&](const Index& x) {
    std::map<int, Index> constants;
    for (const auto& [id, v] : bound) constants[id] = Index(v);
    return te::Substitute(x, [&](const Axis& a) { return constants.count(a.id) ? &constants.at(a.id) : nullptr; })
        .constant();
  };
  const std::function<void(size_t)> run = [&](size_t depth) {
    if (depth == loops.size()) {
      const int64_t at = value(address);
      range = range ? Interval{std::min(range->lo, at), std::max(range->hi, at)} : Interval{at, at};
      return;
    }
    const Loop& loop = loops[depth];
    const int64_t end = loop.limit ? std::min(loop.axis.extent, value(*loop.limit)) : loop.axis.extent;
    for (int64_t i = 0; i < end; ++i) {
      bound[loop.axis.id] = i;
      run(depth + 1);
    }
  };
  for (int64_t i = 0; i < outer.extent; ++i) {
    bound[outer.id] = i;
    run(0);
  }
  return range;
}

TEST(ReachedRange, IsThatOfTheLoopsWhereNoneHasALimit) {
  const Axis i{0, 4}, j{1, 3};
  const Interval range = Of(Index(i) * 5 - Index(j) * 2 + 7, {{i, {}}, {j, {}}});
  EXPECT_EQ(range.lo, 3);
  EXPECT_EQ(range.hi, 22);
}

TEST(ReachedRange, OfAHaloIsWhatEitherBoundLeaves) {
  // Nine rows in two tiles of six: neither the extent nor the limit bounds the address in both tasks.
  const Axis task{83, 2}, row{106, 6};
  const Interval range = Of(Index(task) * 432 + Index(row) * 144, {{row, Index(9) - Index(task) * 6}});
  EXPECT_EQ(range.lo, 0);
  EXPECT_EQ(range.hi, 720);
}

TEST(ReachedRange, IsNothingWhereALoopNeverRuns) {
  const Axis task{0, 2}, row{1, 6};
  EXPECT_FALSE(ReachedRange(Index(row), {{row, Index(task) - 1}}));
}

TEST(ReachedRange, IsThatOfRunningTheLoops) {
  std::mt19937 random(1);
  const auto draw = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
  int limited = 0;
  for (int n = 0; n < 3000; ++n) {
    const Axis outer{0, draw(1, 9)};
    Index address = Index(draw(-9, 9)) + Index(outer) * draw(-9, 9);
    std::vector<Loop> loops;
    for (int id = 1; id <= 3; ++id) {
      const Axis axis{id, draw(1, 5)};
      Loop loop{axis, {}};
      if (draw(0, 2) > 0) loop.limit = Index(draw(-3, 12)) + Index(outer) * draw(-3, 3);
      if (loop.limit && id == 3 && draw(0, 1)) loop.limit = *loop.limit - loops[0].axis;  // a loop of the nest
      loops.push_back(loop);
      address = address + Index(axis) * draw(-9, 9);
    }
    const std::optional<Interval> expected = ByRunning(address, loops, outer);
    const std::optional<Interval> found = ReachedRange(address, loops);
    const bool nested = loops[2].limit && loops[2].limit->UsesAxis(1);
    if (found) {
      ASSERT_TRUE(expected) << n;
      ASSERT_GE(found->lo, expected->lo) << n;
      ASSERT_LE(found->hi, expected->hi) << n;
    }
    if (nested) continue;
    ++limited;
    ASSERT_EQ(found.has_value(), expected.has_value()) << n;
    if (!found) continue;
    ASSERT_EQ(found->lo, expected->lo) << n << " " << te::ToString(address);
    ASSERT_EQ(found->hi, expected->hi) << n << " " << te::ToString(address);
  }
  EXPECT_GT(limited, 1000);
}

}  // namespace
}  // namespace fusion::movement
