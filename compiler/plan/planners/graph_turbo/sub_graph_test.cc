#include "compiler/plan/planners/graph_turbo/sub_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;

// Two 3×3 convolutions and a sum with the input.
OpGraph Chain() {
  return OpGraphFromText(R"(graph g(%x: f32[2, 4, 8, 8]) {
    %w: f32[4, 4, 3, 3] = const #0000000000000000
    %a: f32[2, 4, 8, 8] = Conv(%x, %w) {pads = ints[1, 1, 1, 1]}
    %b: f32[2, 4, 8, 8] = Conv(%a, %w) {pads = ints[1, 1, 1, 1]}
    %c: f32[2, 4, 8, 8] = Add(%b, %x)
    return %c
  })");
}

TEST(SubGraph, InputsAndOutputs) {
  const OpGraph graph = Chain();  // tensors: 0 x, 1 a, 2 b, 3 c
  EXPECT_THAT(OutputsOf(graph, {{0, 1}}), ElementsAre(2));
  EXPECT_THAT(InputsOf(graph, {{1, 2}}), ElementsAre(0, 1));
  EXPECT_THAT(OutputsOf(graph, {{0, 1, 2}}), ElementsAre(3));
}

TEST(SubGraph, PiecesAreRowMajor) {
  EXPECT_EQ(Pieces({2, 1, 4}), 8);
  EXPECT_EQ(PieceAt({2, 1, 4}, 6), (std::vector<int64_t>{1, 0, 2}));
  EXPECT_EQ(PieceOf({4, 3, 8}, {2, 1, 4}, {1, 0, 2}).ranges, (Ranges{{2, 4}, {0, 3}, {4, 6}}));
}

TEST(SubGraph, TheLastPieceMayBeShorter) {
  EXPECT_EQ(PieceOf({7}, {2}, {0}).ranges, (Ranges{{0, 4}}));
  EXPECT_EQ(PieceOf({7}, {2}, {1}).ranges, (Ranges{{4, 7}}));
}

TEST(SubGraph, AFootprintHasTheHalosOfAllItsOperators) {
  const OpGraph graph = Chain();
  const SubGraph all{{0, 1, 2}};
  const auto pieces = PiecesOf(graph, {3}, {2, 1, 4, 1}, {1, 0, 2, 0});
  const Footprint footprint = FootprintOf(graph, all, pieces.regions);
  EXPECT_EQ(footprint.regions.at(2).ranges[2], (Range{4, 6}));
  EXPECT_EQ(footprint.regions.at(1).ranges[2], (Range{3, 7}));
  EXPECT_EQ(footprint.regions.at(0).ranges[2], (Range{2, 8}));
  EXPECT_EQ(footprint.regions.at(0).ranges[0], (Range{1, 2}));
  // A row of an image is 4 · 8 · 4 = 128 bytes. The input (6 rows) lives to the sum; a (4) until b (2) is made; c (2).
  EXPECT_EQ(footprint.peak_bytes, 128 * (6 + 4 + 2));
  // The work of one row of a convolution is the same everywhere: 4 rows and 2 rows, beside a small sum.
  const Footprint whole = FootprintOf(graph, all, {WholeRegion({2, 4, 8, 8})});
  EXPECT_NEAR(footprint.work / whole.work, (4.0 + 2.0) / (16.0 + 16.0), 0.01);
}

TEST(SubGraph, OutputsThatCannotBeCutAlike) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[4, 6]) {
    %s: i64[2] = const {2, 4}
    %a: f32[4, 2], %b: f32[4, 4] = Split(%x, %s) {axis = 1}
    return %a, %b
  })");
  EXPECT_TRUE(PiecesOf(graph, {1, 2}, {2, 1}, {1, 0}).ok);
  EXPECT_FALSE(PiecesOf(graph, {1, 2}, {1, 2}, {0, 1}).ok);
}

}  // namespace
}  // namespace fusion::graph_turbo
