#include "compiler/te/ranges/path_conditions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "compiler/te/testing/index_values.h"

namespace fusion::te {
namespace {

using testing::Holds;
using testing::ValueOf;

const Axis kI{0, 12}, kJ{1, 7};

Interval RangeUnder(const Pred& pred, const Index& x) {
  PathConditions conditions;
  conditions.Assume(pred);
  return conditions.RangeOf(x);
}

TEST(PathConditions, BoundAnAxis) {
  const Interval below = RangeUnder({{kI, Cmp::kLt, 5}}, kI);
  EXPECT_EQ(below.lo, 0);
  EXPECT_EQ(below.hi, 4);
  const Interval between = RangeUnder({{kI, Cmp::kLt, 5}, {kI, Cmp::kGe, 3}}, Index(kI) * 2 + 1);
  EXPECT_EQ(between.lo, 7);
  EXPECT_EQ(between.hi, 9);
  const Interval equal = RangeUnder({{Index(kI) + Index(kJ), Cmp::kEq, 0}}, Index(kI));
  EXPECT_EQ(equal.hi, 0) << "neither is negative";
}

TEST(PathConditions, BoundADifferenceOfAxes) {
  // i < j: i is one of the axis that is shorter, and j is not 0.
  const Pred less = {{kI, Cmp::kLt, kJ}};
  EXPECT_EQ(RangeUnder(less, kI).hi, 5);
  EXPECT_EQ(RangeUnder(less, kJ).lo, 1);
  EXPECT_EQ(RangeUnder(less, Index(kJ) - Index(kI)).lo, 1);
}

TEST(PathConditions, ANegatedConditionHoldsOnTheOtherPath) {
  PathConditions conditions;
  conditions.AssumeNot({{kI, Cmp::kLt, 5}});
  EXPECT_EQ(conditions.RangeOf(kI).lo, 5);
  PathConditions two;  // not (a and b) says nothing of a or b alone
  two.AssumeNot({{kI, Cmp::kLt, 5}, {kJ, Cmp::kLt, 5}});
  EXPECT_EQ(two.RangeOf(kI).lo, 0);
  EXPECT_EQ(two.RangeOf(kI).hi, 11);
}

TEST(PathConditions, ConditionsThatContradictEachOtherLeaveNothing) {
  const Interval range = RangeUnder({{kI, Cmp::kLt, 3}, {kI, Cmp::kGe, 5}}, kI);
  EXPECT_GT(range.lo, range.hi);
}

// A random index over both axes, with divisions and remainders.
Index RandomIndex(std::mt19937* random, int depth) {
  const auto draw = [&](int most) { return static_cast<int64_t>((*random)() % static_cast<unsigned>(most)); };
  Index x = Index(kI) * (draw(5) - 2) + Index(kJ) * (draw(5) - 2) + (draw(13) - 6);
  if (depth > 0 && draw(2) == 0) x = x + FloorDiv(RandomIndex(random, depth - 1), draw(4) + 1) * (draw(3) - 1);
  if (depth > 0 && draw(2) == 0) x = x + Mod(RandomIndex(random, depth - 1), draw(6) + 1);
  return x;
}

// Every value at every point where the conditions hold lies in the range, and the range is no wider than without them.
TEST(PathConditions, RangesHoldEveryValue) {
  std::mt19937 random(7);
  int met = 0, narrowed = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const Index x = RandomIndex(&random, 2);
    Pred pred;
    for (unsigned c = random() % 4; c > 0; --c) {
      pred.push_back({RandomIndex(&random, 1), static_cast<Cmp>(random() % 4), RandomIndex(&random, 1)});
    }
    const Interval range = RangeUnder(pred, x);
    const Interval free = x.Range();
    EXPECT_GE(range.lo, free.lo);
    EXPECT_LE(range.hi, free.hi);
    narrowed += range.lo > free.lo || range.hi < free.hi;
    for (int64_t i = 0; i < kI.extent; ++i) {
      for (int64_t j = 0; j < kJ.extent; ++j) {
        const std::vector<int64_t> at = {i, j};
        if (!Holds(pred, at)) continue;
        ++met;
        const int64_t value = ValueOf(x, at);
        ASSERT_LE(range.lo, value) << ToString(x) << " at " << i << ", " << j << " in trial " << trial;
        ASSERT_GE(range.hi, value) << ToString(x) << " at " << i << ", " << j << " in trial " << trial;
      }
    }
  }
  EXPECT_GT(met, 10000);
  EXPECT_GT(narrowed, 300);
}

}  // namespace
}  // namespace fusion::te
