#include "compiler/plan/planners/graph_turbo/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> FactorsOf(const Grouping& grouping) {
  std::vector<int64_t> factors;
  for (const GroupedSubGraph& grouped : grouping.sub_graphs) factors.push_back(grouped.best ? grouped.best->f : 0);
  return factors;
}

TEST(Group, RuleOneAndRuleTwo) {
  EXPECT_TRUE(RuleOne(4, 4, 4));
  EXPECT_TRUE(RuleOne(2, 4, 3));
  EXPECT_FALSE(RuleOne(8, 4, 4));  // a large factor does not reach what comes after a down-sampling
  EXPECT_FALSE(RuleOne(4, 4, 8));  // nor does a merge make instances smaller
  EXPECT_TRUE(RuleTwo({2, 4, 1}, 4));
  EXPECT_FALSE(RuleTwo({2, 4, 1}, 8));
}

// Figures 3a and 6: each stage is a sub-graph; they are split into eight, four, two and one.
TEST(Group, StagesThatDownSampleStayApart) {
  const Grouping grouping = GroupSubGraphs(OpGraphFromText(FourStages(8)), {3000, 1.25});
  EXPECT_THAT(FactorsOf(grouping), ElementsAre(8, 4, 2, 1));
  EXPECT_TRUE(grouping.merges.empty());
}

// Two rows of %a for one of %b: eight instances of one image each, where %b alone would have four.
TEST(Group, StagesThatDownSampleShareInstancesWhereverTheyFit) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[8, 4, 8, 8]) {
    %w: f32[4, 4, 1, 1] = const #0000000000000000
    %a: f32[8, 4, 8, 8] = Conv(%x, %w)
    %b: f32[8, 4, 4, 4] = MaxPool(%a) {kernel_shape = ints[2, 2], strides = ints[2, 2]}
    return %b
  })");
  EXPECT_THAT(FactorsOf(GroupSubGraphs(graph, {3000, 1.25})), ElementsAre(8, 4));
  EXPECT_THAT(FactorsOf(GroupSubGraphs(graph, {3000, 1.25}, GroupRules{.wherever_fits = true})), ElementsAre(8));
}

// Figure 5: the convolution block (three layers, a shortcut with a layer of its own) and the identity block.
constexpr char kBlocks[] = R"(graph blocks(%x: f32[8, 4, 4, 4]) {
  %w: f32[4, 4, 1, 1] = const #0000000000000000
  %c1: f32[8, 4, 4, 4] = Conv(%x, %w)
  %r1: f32[8, 4, 4, 4] = Relu(%c1)
  %c2: f32[8, 4, 4, 4] = Conv(%r1, %w)
  %r2: f32[8, 4, 4, 4] = Relu(%c2)
  %c3: f32[8, 4, 4, 4] = Conv(%r2, %w)
  %shortcut: f32[8, 4, 4, 4] = Conv(%x, %w)
  %sum: f32[8, 4, 4, 4] = Add(%c3, %shortcut)
  %block: f32[8, 4, 4, 4] = Relu(%sum)
  %d1: f32[8, 4, 4, 4] = Conv(%block, %w)
  %s1: f32[8, 4, 4, 4] = Relu(%d1)
  %d2: f32[8, 4, 4, 4] = Conv(%s1, %w)
  %identity: f32[8, 4, 4, 4] = Add(%d2, %block)
  %end: f32[8, 4, 4, 4] = Relu(%identity)
  return %end
})";

TEST(Group, BlocksOfAStageBecomeOneSubGraph) {
  // Three images of 256 bytes are live in a block, so two images fit at once: four instances.
  const Grouping grouping = GroupSubGraphs(OpGraphFromText(kBlocks), {1600, 1.25});
  EXPECT_THAT(FactorsOf(grouping), ElementsAre(4));
  EXPECT_EQ(grouping.sub_graphs[0].sub_graph.ops.size(), 13);
  // The layers of Fig. 5a are straight patterns, the ends of the blocks diamonds or branches.
  EXPECT_EQ(grouping.merges[0], "straight: c1 + r1, f 4");
  const auto uses = [&](const char* pattern) {
    return std::count_if(grouping.merges.begin(), grouping.merges.end(),
                         [&](const std::string& merge) { return absl::StartsWith(merge, pattern); });
  };
  EXPECT_GT(uses("straight"), 5);
  EXPECT_GT(uses("branch") + uses("diamond"), 1);
}

TEST(Group, ADiamondLeavesItsEntry) {
  // %a is returned, so that it cannot become part of a sub-graph with one output.
  const Grouping grouping = GroupSubGraphs(OpGraphFromText(R"(graph g(%x: f32[8, 16]) {
    %a: f32[8, 16] = Abs(%x)
    %b: f32[8, 16] = Exp(%a)
    %c: f32[8, 16] = Neg(%a)
    %d: f32[8, 16] = Add(%b, %c)
    return %a, %d
  })"),
                                           {1 << 20, 1.25});
  ASSERT_EQ(grouping.sub_graphs.size(), 2);
  EXPECT_THAT(grouping.merges, ElementsAre("diamond: b + c + d, f 1"));
  EXPECT_THAT(grouping.sub_graphs[1].sub_graph.ops, ElementsAre(1, 2, 3));
}

TEST(Group, ABranchTakesAProducerThatOnlyTheExitReads) {
  const Grouping grouping = GroupSubGraphs(OpGraphFromText(R"(graph g(%x: f32[8, 16], %y: f32[8, 16]) {
    %a: f32[8, 16] = Abs(%x)
    %b: f32[8, 16] = Exp(%y)
    %c: f32[8, 16] = Add(%a, %b)
    return %a, %c
  })"),
                                           {1 << 20, 1.25});
  EXPECT_THAT(grouping.merges, ElementsAre("branch: b + c, f 1"));
}

TEST(Group, WhatDoesNotFitStaysAlone) {
  const Grouping grouping = GroupSubGraphs(OpGraphFromText(R"(graph g(%x: f32[4096]) {
    %k: i64[1] = const {0}
    %a: f32[1] = ReduceSum(%x, %k)
    %b: f32[1] = Neg(%a)
    return %b
  })"),
                                           {100, 1.25});
  EXPECT_THAT(FactorsOf(grouping), ElementsAre(0, 1));
}

}  // namespace
}  // namespace fusion::graph_turbo
