#include "compiler/plan/planners/graph_turbo/split_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;

TEST(SplitInfo, TriesTheFactorsOfTheListThatDivide) {
  EXPECT_THAT(SplitFactors(1, true), ElementsAre(1));
  EXPECT_THAT(SplitFactors(7, true), ElementsAre(1, 7));
  EXPECT_THAT(SplitFactors(12, true), ElementsAre(1, 2, 4, 12));
  EXPECT_THAT(SplitFactors(36, true), ElementsAre(1, 2, 4, 9, 12, 18, 36));
}

TEST(SplitInfo, CutsUnevenlyWhereNoFactorIsNear) {
  EXPECT_THAT(SplitFactors(16, false), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(SplitFactors(7, false), ElementsAre(1, 2, 7));  // 4 + 3 elements; 7 is below twice 4
  EXPECT_THAT(SplitFactors(13, false), ElementsAre(1, 2, 4, 13));
  const std::vector<int64_t> prime = SplitFactors(197, false);
  EXPECT_THAT(prime, ::testing::IsSupersetOf({1, 2, 4, 8, 9, 10, 197}));
  EXPECT_THAT(prime, ::testing::Each(::testing::Truly([](int64_t v) { return v <= 98 || v == 197; })));
}

// An image takes 4 · 8 · 8 · 4 = 1024 bytes in and 1024 out.
OpGraph OneStage() {
  return OpGraphFromText(R"(graph g(%x: f32[8, 4, 8, 8]) {
    %w: f32[4, 4, 1, 1] = const #0000000000000000
    %y: f32[8, 4, 8, 8] = Conv(%x, %w)
    return %y
  })");
}

TEST(SplitInfo, TakesTheSmallestFactorThatFitsOfEachDimension) {
  const OpGraph graph = OneStage();
  const std::vector<Split> splits = SplitInfo(graph, {{0}}, {4096, 1.25, /*literal=*/true});
  // Two images at once, or a quarter of the rows or columns. A split of the channels reads all of the input.
  ASSERT_EQ(splits.size(), 3);
  EXPECT_EQ(splits[0].factors, (Factors{4, 1, 1, 1}));
  EXPECT_EQ(splits[1].factors, (Factors{1, 1, 4, 1}));
  EXPECT_EQ(splits[2].factors, (Factors{1, 1, 1, 4}));
  EXPECT_EQ(splits[0].peak_bytes, 4096);
  // All split one operator into four, so the outermost dimension wins.
  EXPECT_EQ(BestSplit(splits)->d, 0);
}

TEST(SplitInfo, TheOutermostDimensionIsSplitAloneIfThatFits) {
  // Two images do not fit: eight instances.
  const std::vector<Split> splits = SplitInfo(OneStage(), {{0}}, {3000, 1.25});
  ASSERT_EQ(splits.size(), 1);
  EXPECT_EQ(splits[0].factors, (Factors{8, 1, 1, 1}));
}

TEST(SplitInfo, TheWholeIsASplitThatFits) {
  const std::vector<Split> splits = SplitInfo(OneStage(), {{0}}, {1 << 20, 1.25});
  EXPECT_EQ(BestSplit(splits)->f, 1);
  EXPECT_EQ(BestSplit(splits)->n, 1);
}

TEST(SplitInfo, SplitsWithinImagesThatDoNotFit) {
  const std::vector<Split> splits = SplitInfo(OneStage(), {{0}}, {200, 1.25});
  // One row of one image is 128 + 128 bytes, one column too; a single element of the plane is 32.
  ASSERT_FALSE(splits.empty());
  EXPECT_EQ(BestSplit(splits)->factors[0], 8);
  EXPECT_LE(BestSplit(splits)->peak_bytes, 200);
  EXPECT_TRUE(SplitInfo(OneStage(), {{0}}, {4, 1.25}).empty());
}

TEST(SplitInfo, TheThirdDimensionIsTheOneThatSavesMost) {
  // A single channel of the result needs all 4 channels of the input, a single row an eighth of it.
  const std::optional<Split> best = BestSplit(SplitInfo(OneStage(), {{0}}, {200, 1.25}));
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->factors[0], 8);
  EXPECT_EQ(best->factors[2], 8);
}

TEST(SplitInfo, RefusesSplitsThatComputeTooMuchAgain) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[1, 4, 16, 16]) {
    %w: f32[4, 4, 3, 3] = const #0000000000000000
    %a: f32[1, 4, 16, 16] = Conv(%x, %w) {pads = ints[1, 1, 1, 1]}
    %b: f32[1, 4, 16, 16] = Conv(%a, %w) {pads = ints[1, 1, 1, 1]}
    return %b
  })");
  const SubGraph both{{0, 1}};
  // In two parts, a is computed for 9 + 9 rows instead of 16.
  const std::vector<Split> halves = SplitInfo(graph, both, {5000, 1.25});
  ASSERT_FALSE(halves.empty());
  EXPECT_EQ(halves[0].factors, (Factors{1, 1, 2, 1}));
  EXPECT_NEAR(halves[0].recomputation, (18.0 + 16) / 32, 0.001);
  EXPECT_EQ(halves[0].n, 2);
  EXPECT_TRUE(SplitInfo(graph, both, {5000, 1.05}).empty());
}

TEST(SplitInfo, BestIsTheLexicographicMaximum) {
  Split two_operators, small, inner, chosen;
  two_operators.n = 2, two_operators.f = 8, two_operators.d = 2;
  small.n = 1, small.f = 1;
  inner.n = 2, inner.f = 4, inner.d = 1;
  chosen.n = 2, chosen.f = 4, chosen.d = 0;
  EXPECT_EQ(*BestSplit({two_operators, small, inner, chosen}), chosen);
  EXPECT_EQ(*BestSplit({two_operators, inner}), inner);
  EXPECT_EQ(*BestSplit({small, two_operators}), two_operators);
  EXPECT_EQ(BestSplit({}), std::nullopt);
}

}  // namespace
}  // namespace fusion::graph_turbo
