#include "compiler/plan/operator_kind.h"

#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

// The traits of the last node.
OperatorTraits Traits(const std::string& text) {
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return TraitsOf(graph.value()).back();
}

OperatorKind Kind(const std::string& inputs, const std::string& node) {
  return Traits("graph g(" + inputs + ") {\n" + node + "\n return %y\n}").kind;
}

TEST(OperatorKind, FollowsFromTheExpressions) {
  EXPECT_EQ(Kind("%x: f32[4, 8], %b: f32[8]", "%y: f32[4, 8] = Add(%x, %b)"), OperatorKind::kMap);
  EXPECT_EQ(Kind("%x: f32[4, 8]", "%y: f32[8, 4] = Transpose(%x) {perm = ints[1, 0]}"), OperatorKind::kMap);
  EXPECT_EQ(Kind("%x: f32[4, 8]", "%y: f32[4, 8] = Exp(%x)"), OperatorKind::kExpensiveMap);
  EXPECT_EQ(Kind("%x: f32[4, 8]", "%y: f32[4, 8] = Sqrt(%x)"), OperatorKind::kExpensiveMap);
  // As in XLA's fusion for GPUs, a division may be repeated.
  EXPECT_EQ(Kind("%x: f32[4, 8], %b: f32[8]", "%y: f32[4, 8] = Div(%x, %b)"), OperatorKind::kMap);
  EXPECT_EQ(Kind("%x: f32[4, 8]", "%a: i64[1] = const {1}\n%y: f32[4] = ReduceSum(%x, %a) {keepdims = 0}"),
            OperatorKind::kReduction);
  EXPECT_EQ(Kind("%x: f32[4, 8], %w: f32[8, 2]", "%y: f32[4, 2] = MatMul(%x, %w)"), OperatorKind::kProduct);
  // A row by a matrix reads the matrix once, and the row as often as there are columns.
  EXPECT_EQ(Kind("%x: f32[1, 8], %w: f32[8, 2]", "%y: f32[1, 2] = MatMul(%x, %w)"), OperatorKind::kProduct);
  EXPECT_EQ(Kind("%x: f32[1, 4, 8, 8], %w: f32[4, 1, 3, 3]", "%y: f32[1, 4, 6, 6] = Conv(%x, %w) {group = 4}"),
            OperatorKind::kProduct);
  EXPECT_EQ(Kind("%x: f32[4, 8]", "%y: f32[4, 8] = Softmax(%x) {axis = 1}"), OperatorKind::kWhole);
}

TEST(OperatorKind, AWindowRereadsAndARowDoesNot) {
  const OperatorTraits window = Traits(R"(graph g(%x: f32[1, 4, 8, 8]) {
    %y: f32[1, 4, 6, 6] = MaxPool(%x) {kernel_shape = ints[3, 3]}
    return %y
  })");
  EXPECT_EQ(window.kind, OperatorKind::kReduction);
  EXPECT_TRUE(window.rereads);
  const OperatorTraits row = Traits(R"(graph g(%x: f32[4, 8]) {
    %a: i64[1] = const {1}
    %y: f32[4] = ReduceMax(%x, %a) {keepdims = 0}
    return %y
  })");
  EXPECT_FALSE(row.rereads);
}

TEST(OperatorKind, ASoftmaxIsMemoryIntensiveAndAProductIsNot) {
  auto graph = ecg::Parse(R"(graph g(%x: f32[4, 8], %w: f32[8, 8]) {
    %k: i64[1] = const {2}
    %p: f32[4, 8] = MatMul(%x, %w)
    %s: f32[4, 8] = Softmax(%p) {axis = 1}
    %y: f32[4, 2], %j: i64[4, 2] = TopK(%s, %k)
    return %y, %j
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<OperatorTraits> traits = TraitsOf(*graph);
  EXPECT_FALSE(IsMemoryIntensive({traits[0], traits[1]}));
  EXPECT_TRUE(IsMemoryIntensive({traits[1]}));
  EXPECT_FALSE(IsMemoryIntensive({traits[2]}));  // a routine
  EXPECT_TRUE(traits[2].unknown);
}

Access AccessOf(const std::string& inputs, const std::string& node) {
  return Traits("graph g(" + inputs + ") {\n" + node + "\n return %y\n}").access;
}

TEST(OperatorKind, AccessIsTvms) {
  EXPECT_EQ(AccessOf("%x: f32[4, 8], %b: f32[4, 8]", "%y: f32[4, 8] = Add(%x, %b)"), Access::kElementwise);
  EXPECT_EQ(AccessOf("%x: f32[4, 8], %b: f32[4, 1]", "%y: f32[4, 8] = Add(%x, %b)"), Access::kBroadcast);
  EXPECT_EQ(AccessOf("%x: f32[4, 8], %b: f32[8]", "%y: f32[4, 8] = Add(%x, %b)"), Access::kBroadcast);
  EXPECT_EQ(AccessOf("%x: f32[4, 4]", "%y: f32[4, 4] = Transpose(%x) {perm = ints[1, 0]}"), Access::kInjective);
  EXPECT_EQ(AccessOf("%x: f32[4, 8], %i: i64[3]", "%y: f32[3, 8] = Gather(%x, %i) {axis = 0}"), Access::kInjective);
  EXPECT_EQ(AccessOf("%x: f32[4, 8], %z: f32[4, 8]", "%y: f32[4, 16] = Concat(%x, %z) {axis = 1}"), Access::kInjective);
}

}  // namespace
}  // namespace fusion
