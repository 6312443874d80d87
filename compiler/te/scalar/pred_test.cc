#include "compiler/te/scalar/pred.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "compiler/te/testing/index_values.h"

namespace fusion::te {
namespace {

using testing::Holds;

const Axis kBlock{0, 5}, kLane{1, 4}, kTap{2, 3};

// Calls `visit` with every point of the three axes.
template <typename Visit>
void ForEachPoint(const Visit& visit) {
  for (int64_t b = 0; b < kBlock.extent; ++b) {
    for (int64_t l = 0; l < kLane.extent; ++l) {
      for (int64_t t = 0; t < kTap.extent; ++t) visit(std::vector<int64_t>{b, l, t});
    }
  }
}

Comparison RandomComparison(std::mt19937* random) {
  const auto draw = [&](int most) { return static_cast<int64_t>((*random)() % static_cast<unsigned>(most)); };
  // Blocks of lanes are common, and simplification leaves out what lies inside a block.
  Index x = Index(kBlock) * (4 * (draw(3) - 1)) + Index(kLane) * (draw(3) - 1) + Index(kTap) * (draw(5) - 2);
  if (draw(4) == 0) x = Mod(x + 40, draw(6) + 1);
  return {x, static_cast<Cmp>(draw(4)), Index(draw(30) - 10)};
}

TEST(Decide, IsTheTruthAtEveryPoint) {
  std::mt19937 random(1);
  int decided = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Comparison c = RandomComparison(&random);
    const std::optional<bool> truth = Decide(c);
    if (!truth) continue;
    ++decided;
    ForEachPoint([&](const std::vector<int64_t>& at) { ASSERT_EQ(Holds(c, at), *truth) << ToString(c.lhs); });
  }
  EXPECT_GT(decided, 300);
}

TEST(Simplify, KeepsTheTruthAtEveryPoint) {
  std::mt19937 random(2);
  int shorter = 0, contradictions = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Pred pred;
    for (int c = 0; c < 3; ++c) pred.push_back(RandomComparison(&random));
    pred.push_back(pred[0]);  // repeated
    bool never = false;
    const Pred simple = Simplify(pred, &never);
    shorter += simple.size() + 1 < pred.size();
    contradictions += never;
    ForEachPoint([&](const std::vector<int64_t>& at) {
      ASSERT_EQ(!never && Holds(simple, at), Holds(pred, at)) << "trial " << trial;
    });
  }
  EXPECT_GT(shorter, 300);
  EXPECT_GT(contradictions, 300);
}

TEST(CutOf, IsWhereTheConditionEnds) {
  std::mt19937 random(3);
  int cuts = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Comparison c = RandomComparison(&random);
    const std::optional<AxisCut> cut = CutOf({c});
    if (!cut) continue;
    ++cuts;
    ForEachPoint([&](const std::vector<int64_t>& at) {
      ASSERT_EQ(at[cut->axis.id] < cut->at, Holds(c, at)) << ToString(c.lhs) << " < " << ToString(c.rhs);
    });
  }
  EXPECT_GT(cuts, 50);
  EXPECT_FALSE(CutOf({}).has_value());
  EXPECT_FALSE(CutOf({{kLane, Cmp::kLt, 2}, {kTap, Cmp::kLt, 2}}).has_value()) << "two axes";
}

TEST(Substitute, ReachesBothSides) {
  const Index two = 2;
  const auto lane = [&](const Axis& axis) { return axis.id == kLane.id ? &two : nullptr; };
  const Pred replaced = Substitute(Pred{{kLane, Cmp::kLt, Index(kTap) + Index(kLane)}}, lane);
  ASSERT_EQ(replaced.size(), 1u);
  EXPECT_EQ(replaced[0].lhs, Index(2));
  EXPECT_EQ(replaced[0].rhs, Index(kTap) + 2);
}

}  // namespace
}  // namespace fusion::te
