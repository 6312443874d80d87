#include "compiler/analysis/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fusion::ecg {
namespace {

using ::testing::ElementsAre;

Graph Parsed(const std::string& text) {
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
  return *std::move(graph);
}

// The slices of the only output.
std::optional<Slices> SlicesOfOutput(const Graph& graph) { return SliceFinder(graph).SlicesOf(graph.outputs()[0]); }

TEST(Slices, AShuffleOfAConcatComesFromItsParts) {
  const Graph graph = Parsed(R"(graph g(%a: f32[1, 2, 3, 3], %b: f32[1, 2, 3, 3]) {
  %split: i64[5] = const {1, 2, 2, 3, 3}
  %whole: i64[4] = const {1, 4, 3, 3}
  %c: f32[1, 4, 3, 3] = Concat(%a, %b) {axis = 1}
  %r: f32[1, 2, 2, 3, 3] = Reshape(%c, %split)
  %t: f32[1, 2, 2, 3, 3] = Transpose(%r) {perm = ints[0, 2, 1, 3, 4]}
  %y: f32[1, 4, 3, 3] = Reshape(%t, %whole)
  return %y
})");
  const std::optional<Slices> slices = SlicesOfOutput(graph);
  ASSERT_TRUE(slices);
  EXPECT_EQ(slices->axis, 1);
  const ValueId a = graph.inputs()[0], b = graph.inputs()[1];
  EXPECT_THAT(slices->slices, ElementsAre(Slice{a, 0}, Slice{b, 0}, Slice{a, 1}, Slice{b, 1}));
}

TEST(Slices, ATableOfIndicesIsKnown) {
  const Graph graph = Parsed(R"(graph g(%x: f32[2, 5]) {
  %i: i64[4] = const {3, 0, 4, -4}
  %y: f32[2, 4] = Gather(%x, %i) {axis = 1}
  return %y
})");
  const std::optional<Slices> slices = SlicesOfOutput(graph);
  ASSERT_TRUE(slices);
  const ValueId x = graph.inputs()[0];
  EXPECT_THAT(slices->slices, ElementsAre(Slice{x, 3}, Slice{x, 0}, Slice{x, 4}, Slice{x, 1}));
}

TEST(Slices, ComputingIsNotMoving) {
  const Graph graph = Parsed(R"(graph g(%x: f32[2, 4]) {
  %r: f32[2, 4] = Relu(%x)
  %c: f32[2, 8] = Concat(%r, %x) {axis = 1}
  return %c
})");
  SliceFinder finder(graph);
  EXPECT_FALSE(finder.Moves(0));
  EXPECT_TRUE(finder.Moves(1));
  EXPECT_FALSE(finder.SlicesOf(graph.node(0).outputs[0]));
  EXPECT_EQ(finder.SlicesOf(graph.outputs()[0])->slices[0].value, graph.node(0).outputs[0]);
}

// Nothing of these stands slice by slice in an operand of the same shape.
TEST(Slices, OtherMovesHaveNone) {
  EXPECT_FALSE(SlicesOfOutput(Parsed(R"(graph g(%x: f32[3, 3]) {
  %y: f32[3, 3] = Transpose(%x) {perm = ints[1, 0]}
  return %y
})"))) << "rows become columns";
  EXPECT_FALSE(SlicesOfOutput(Parsed(R"(graph g(%x: f32[4, 6]) {
  %b: i64[2] = const {1, 2}
  %e: i64[2] = const {3, 5}
  %y: f32[2, 3] = Slice(%x, %b, %e)
  return %y
})"))) << "parts of slices";
  EXPECT_FALSE(SlicesOfOutput(Parsed(R"(graph g(%x: f32[2, 2]) {
  %k: f32[2, 2] = const {1.0, 2.0, 3.0, 4.0}
  %y: f32[2, 4] = Concat(%x, %k) {axis = 1}
  return %y
})"))) << "a constant";
  EXPECT_FALSE(SlicesOfOutput(Parsed(R"(graph g(%x: f32[2, 4], %i: i64[3]) {
  %y: f32[2, 3] = Gather(%x, %i) {axis = 1}
  return %y
})"))) << "indices that are known when it runs";
}

}  // namespace
}  // namespace fusion::ecg
