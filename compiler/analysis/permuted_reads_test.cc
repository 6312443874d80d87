#include "compiler/analysis/permuted_reads.h"

#include <gtest/gtest.h>

#include <string>

namespace fusion::ecg {
namespace {

Graph Parsed(const std::string& text) {
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
  return *std::move(graph);
}

// Permutes the slices of the first input of the only node.
std::optional<PermutedReads> Permute(const Graph& graph, int axis) {
  return PermuteReads(graph, 0, graph.node(0).inputs[0], axis);
}

TEST(PermutedReads, AConvolutionSumsItsChannelsInAnyOrder) {
  const Graph graph = Parsed(R"(graph g(%x: f32[1, 4, 5, 5]) {
  %w: f32[6, 4, 3, 3] = const #00000000000000aa
  %b: f32[6] = const {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
  %y: f32[1, 6, 5, 5] = Conv(%x, %w, %b) {pads = ints[1, 1, 1, 1]}
  return %y
})");
  const std::optional<PermutedReads> reads = Permute(graph, 1);
  ASSERT_TRUE(reads);
  EXPECT_TRUE(reads->KeepsOutputs());
  EXPECT_EQ(reads->constants, (std::map<ValueId, int>{{graph.node(0).inputs[1], 1}}));
  EXPECT_FALSE(Permute(graph, 2)) << "rows of the image are neighbours";
}

TEST(PermutedReads, ADepthwiseConvolutionPassesThePermutationOn) {
  const Graph graph = Parsed(R"(graph g(%x: f32[1, 4, 5, 5]) {
  %w: f32[4, 1, 3, 3] = const #00000000000000aa
  %b: f32[4] = const {1.0, 2.0, 3.0, 4.0}
  %y: f32[1, 4, 3, 3] = Conv(%x, %w, %b) {group = 4}
  return %y
})");
  const std::optional<PermutedReads> reads = Permute(graph, 1);
  ASSERT_TRUE(reads);
  EXPECT_EQ(reads->outputs, std::vector<int>{1});
  EXPECT_EQ(reads->constants, (std::map<ValueId, int>{{graph.node(0).inputs[1], 0}, {graph.node(0).inputs[2], 0}}));
}

TEST(PermutedReads, GroupsReadTheirOwnChannels) {
  const Graph graph = Parsed(R"(graph g(%x: f32[1, 4, 5, 5]) {
  %w: f32[6, 2, 3, 3] = const #00000000000000aa
  %y: f32[1, 6, 3, 3] = Conv(%x, %w) {group = 2}
  return %y
})");
  EXPECT_FALSE(Permute(graph, 1));
}

TEST(PermutedReads, RowsOfAProductAndTermsOfItsSums) {
  const Graph graph = Parsed(R"(graph g(%x: f32[3, 4]) {
  %w: f32[4, 5] = const #00000000000000aa
  %y: f32[3, 5] = MatMul(%x, %w)
  return %y
})");
  EXPECT_EQ(Permute(graph, 1)->constants, (std::map<ValueId, int>{{graph.node(0).inputs[1], 0}}));
  EXPECT_TRUE(Permute(graph, 1)->KeepsOutputs());
  EXPECT_TRUE(Permute(graph, 0)->constants.empty());
  EXPECT_EQ(Permute(graph, 0)->outputs, std::vector<int>{0});
}

TEST(PermutedReads, ElementwiseWithAConstantOrAScalar) {
  const Graph graph = Parsed(R"(graph g(%x: f32[2, 4]) {
  %k: f32[4] = const {1.0, 2.0, 3.0, 4.0}
  %y: f32[2, 4] = Mul(%x, %k)
  return %y
})");
  EXPECT_EQ(Permute(graph, 1)->constants, (std::map<ValueId, int>{{graph.node(0).inputs[1], 0}}));
  EXPECT_TRUE(Permute(graph, 0)->constants.empty()) << "the constant is the same for all rows";
}

TEST(PermutedReads, WhatNeedsTheOrder) {
  EXPECT_FALSE(Permute(Parsed(R"(graph g(%x: f32[2, 4], %z: f32[2, 4]) {
  %y: f32[2, 4] = Mul(%x, %z)
  return %y
})"),
                       1))
      << "the other operand is no constant";
  EXPECT_FALSE(Permute(Parsed(R"(graph g(%x: f32[2, 4]) {
  %k: i64[1] = const {1}
  %v: f32[2, 1], %i: i64[2, 1] = TopK(%x, %k)
  return %v, %i
})"),
                       1))
      << "a routine";
  EXPECT_FALSE(Permute(Parsed(R"(graph g(%x: f32[2, 4]) {
  %k: i64[] = const {1}
  %y: f32[2, 4] = CumSum(%x, %k)
  return %y
})"),
                       1))
      << "it tests the index";
  EXPECT_FALSE(Permute(Parsed(R"(graph g(%x: f32[2, 4]) {
  %y: i64[2, 1] = ArgMax(%x) {axis = 1}
  return %y
})"),
                       1))
      << "it computes with the index";
  EXPECT_FALSE(Permute(Parsed(R"(graph g(%x: f32[2, 4]) {
  %s: i64[1] = const {8}
  %y: f32[8] = Reshape(%x, %s)
  return %y
})"),
                       1))
      << "the axis is no axis of the result";
}

}  // namespace
}  // namespace fusion::ecg
