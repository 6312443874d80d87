#include "compiler/plan/planners/power_fusion/basic_operators.h"

#include <gtest/gtest.h>

#include "compiler/plan/planners/power_fusion/testing/operators.h"

namespace fusion::power_fusion {
namespace {

TEST(BasicOperators, AreOfFourKinds) {
  const Operators graph(R"(graph g(%x: f32[8, 16], %row: f32[16], %i: i64[4]) {
    %s: i64[2] = const {16, 8}
    %e: f32[8, 16] = Exp(%x)
    %b: f32[8, 16] = Add(%e, %row)
    %m: f32[8, 16] = Softmax(%b) {axis = 1}
    %t: f32[16, 8] = Transpose(%m) {perm = ints[1, 0]}
    %r: f32[16, 8] = Reshape(%x, %s)
    %g: f32[4, 8] = Gather(%t, %i) {axis = 0}
    return %g, %r
  })");
  EXPECT_STREQ(BasicKindName(graph.Of("e").kind), "elementwise");
  EXPECT_STREQ(BasicKindName(graph.Of("b").kind), "broadcast");
  EXPECT_STREQ(BasicKindName(graph.Of("m_max").kind), "reduce");
  EXPECT_STREQ(BasicKindName(graph.Of("t").kind), "transpose");
  EXPECT_STREQ(BasicKindName(graph.Of("r").kind), "transpose") << "elements only move";
  EXPECT_TRUE(graph.Of("r").operands[0].in_order);
  EXPECT_STREQ(BasicKindName(graph.Of("g").kind), "transpose");
  bool looked_up = false;
  for (const Operand& operand : graph.Of("g").operands) looked_up |= operand.looked_up;
  EXPECT_TRUE(looked_up);
}

TEST(BasicOperators, RoutinesAreOpaque) {
  const Operators graph(R"(graph g(%x: f32[8, 16]) {
    %k: i64[1] = const {4}
    %v: f32[8, 4], %i: i64[8, 4] = TopK(%x, %k) {axis = 1}
    return %v, %i
  })");
  EXPECT_EQ(graph.basic[0].kind, BasicKind::kOpaque);
  EXPECT_TRUE(graph.basic[0].routine);
  EXPECT_FALSE(graph.basic[0].compute_bound);
}

// Figure 7: counts decide what is bound by computation, not the type of the operator.
TEST(BasicOperators, DepthwiseConvolutionsAreBoundByMemoryAndPointwiseOnesByComputation) {
  const Operators graph(R"(graph g(%x: f32[1, 192, 14, 14]) {
    %a: f32[1152, 192, 1, 1] = const #0000000000000001
    %d: f32[1152, 1, 3, 3] = const #0000000000000002
    %expanded: f32[1, 1152, 14, 14] = Conv(%x, %a)
    %relu: f32[1, 1152, 14, 14] = Relu(%expanded)
    %deep: f32[1, 1152, 14, 14] = Conv(%relu, %d) {group = 1152, pads = ints[1, 1, 1, 1]}
    return %deep
  })");
  EXPECT_TRUE(graph.Of("expanded").compute_bound);
  EXPECT_FALSE(graph.Of("relu").compute_bound);
  EXPECT_FALSE(graph.Of("deep").compute_bound);
  EXPECT_EQ(graph.Of("deep").kind, BasicKind::kReduce);
}

TEST(BasicOperators, AProductOfOneRowIsBoundByMemory) {
  const Operators graph(R"(graph g(%x: f32[1, 768], %many: f32[128, 768], %w: f32[768, 768]) {
    %one: f32[1, 768] = MatMul(%x, %w)
    %all: f32[128, 768] = MatMul(%many, %w)
    return %one, %all
  })");
  EXPECT_FALSE(graph.Of("one").compute_bound);
  EXPECT_TRUE(graph.Of("all").compute_bound);
  EXPECT_FALSE(graph.Of("one").operands.back().rereads) << "each weight is read once";
  EXPECT_TRUE(graph.Of("all").operands.back().rereads);
}

TEST(BasicOperators, StopWhenCancelled) {
  const Operators graph("graph g(%x: f32[8]) {\n %a: f32[8] = Abs(%x)\n return %a\n}");
  EXPECT_EQ(BasicOperatorsOf(graph.graph, graph.device, [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fusion::power_fusion
