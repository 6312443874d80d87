#include "compiler/plan/planners/fusion_stitching/locality.h"

#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

// The pieces of the last node for the value of the node before it.
int64_t Pieces(const std::string& shape, const std::string& node) {
  auto graph = ecg::Parse("graph g(%x: f32[" + shape + "]) {\n %i: i64[2] = const {1, 0}\n %a: f32[" + shape +
                          "] = Abs(%x)\n" + node + "\n return %y\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return -1;
  const auto pieces = PiecesByOperand(graph.value(), 1);
  EXPECT_EQ(pieces.size(), 1u);
  return pieces.empty() ? -1 : pieces.begin()->second;
}

TEST(Locality, RowsOfReductionsAndBroadcasts) {
  EXPECT_EQ(Pieces("8, 128, 512", "%y: f32[8, 128, 512] = Neg(%a)"), 8 * 128 * 512);
  EXPECT_EQ(Pieces("8, 128, 512", "%y: f32[8, 128, 512] = Softmax(%a) {axis = 2}"), 8 * 128);
  EXPECT_EQ(Pieces("8, 128, 512", "%y: f32[8, 128, 512] = Softmax(%a) {axis = 1}"), 8);
  EXPECT_EQ(Pieces("8, 128, 1", "%s: i64[3] = const {8, 128, 512}\n %y: f32[8, 128, 512] = Expand(%a, %s)"), 8 * 128);
}

TEST(Locality, IndexMaps) {
  EXPECT_EQ(Pieces("8, 128, 512", "%y: f32[8, 512, 128] = Transpose(%a) {perm = ints[0, 2, 1]}"), 8);
  EXPECT_EQ(Pieces("8, 128, 512", "%s: i64[2] = const {1024, 512}\n %y: f32[1024, 512] = Reshape(%a, %s)"),
            8 * 128 * 512);
  // Every row of the result may be any row of the operand.
  EXPECT_EQ(Pieces("8, 512", "%y: f32[2, 512] = Gather(%a, %i) {axis = 0}"), 1);
  // Five rows have no pieces in common with eight.
  EXPECT_EQ(Pieces("8, 4", "%b: i64[1] = const {0}\n %e: i64[1] = const {5}\n %y: f32[5, 4] = Slice(%a, %b, %e, %b)"),
            1);
}

TEST(Locality, ReadingOnlyTheShapeRestrictsNothing) {
  auto graph = ecg::Parse(R"(graph g(%x: f32[8, 4]) {
    %a: f32[8, 4] = Abs(%x)
    %y: i64[2] = Shape(%a)
    return %y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PiecesByOperand(*graph, 1).begin()->second, 0);
  EXPECT_EQ(CommonPieces(0, 24), 24);
  EXPECT_EQ(CommonPieces(16, 24), 8);
}

}  // namespace
}  // namespace fusion
