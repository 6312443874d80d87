#include "compiler/analysis/expressions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion::ecg {
namespace {

using te::Dependence;
using ::testing::ElementsAre;

Graph Parsed(const std::string& text) {
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

NodeExpressions Facts(const Graph& graph, NodeId node) {
  const auto facts = ExpressionsOf(graph, node);
  EXPECT_TRUE(facts.ok()) << facts.status();
  return facts.value_or(NodeExpressions());
}

// The paper's examples: a product is computation-intensive, reduce_sum and arithmetic are memory-intensive.
TEST(Expressions, ProductsComputeAndSumsMove) {
  const Graph graph = Parsed(R"(graph g(%x: f32[64, 64], %y: f32[64, 64]) {
    %p: f32[64, 64] = MatMul(%x, %y)
    %r: f32[64, 64] = Relu(%p)
    %s: f32[64, 64] = Softmax(%r) {axis = 1}
    %t: f32[64, 64] = Transpose(%s) {perm = ints[1, 0]}
    return %t
  })");
  const NodeExpressions product = Facts(graph, 0), relu = Facts(graph, 1), softmax = Facts(graph, 2),
                        transpose = Facts(graph, 3);
  EXPECT_TRUE(product.ComputeIntensive());
  EXPECT_NEAR(product.intensity, 2.0 * 64 * 64 * 64 / (3 * 64 * 64), 1e-9);
  EXPECT_EQ(product.relies_on.at(graph.node(0).inputs[0]), Dependence::kMany);
  EXPECT_FALSE(relu.reduces);
  EXPECT_FALSE(relu.ComputeIntensive());
  EXPECT_EQ(relu.relies_on.at(graph.node(1).inputs[0]), Dependence::kOne);
  EXPECT_TRUE(softmax.reduces);
  EXPECT_FALSE(softmax.ComputeIntensive());
  EXPECT_EQ(softmax.relies_on.at(graph.node(2).inputs[0]), Dependence::kMany) << "through its maximum and its sum";
  EXPECT_EQ(transpose.relies_on.at(graph.node(3).inputs[0]), Dependence::kOne);
}

// A product with a vector reads more than it computes, although it is a MatMul: the operator's name says nothing.
TEST(Expressions, AProductWithAVectorMoves) {
  const Graph graph = Parsed(R"(graph g(%x: f32[1, 64], %y: f32[64, 64]) {
    %p: f32[1, 64] = MatMul(%x, %y)
    return %p
  })");
  EXPECT_TRUE(Facts(graph, 0).reduces);
  EXPECT_FALSE(Facts(graph, 0).ComputeIntensive());
}

TEST(Expressions, ABroadcastOperandIsReadOnceForEachElement) {
  const Graph graph = Parsed(R"(graph g(%x: f32[8, 64], %row: f32[1, 64]) {
    %a: f32[8, 64] = Add(%x, %row)
    return %a
  })");
  EXPECT_EQ(Facts(graph, 0).relies_on.at(graph.inputs()[1]), Dependence::kOne);
}

TEST(Expressions, ValuesWithSeveralReadersAreReuseSets) {
  const Graph graph = Parsed(R"(graph g(%x: f32[8], %y: f32[8]) {
    %a: f32[8] = Relu(%x)
    %b: f32[8] = Exp(%x)
    %c: f32[8] = Neg(%a)
    %d: f32[8] = Add(%a, %c)
    %e: f32[8] = Mul(%y, %y)
    return %b, %d, %e
  })");
  const std::vector<ReuseSet> sets = ReuseSets(graph);
  ASSERT_EQ(sets.size(), 2u) << "%y is read twice by one node, which is no reuse between nodes";
  EXPECT_EQ(graph.value(sets[0].value).name, "x");
  EXPECT_THAT(sets[0].readers, ElementsAre(0, 1));
  EXPECT_TRUE(sets[0].spatial);
  EXPECT_FALSE(sets[0].temporal);
  EXPECT_EQ(graph.value(sets[1].value).name, "a");
  EXPECT_THAT(sets[1].readers, ElementsAre(2, 3));
  EXPECT_FALSE(sets[1].spatial);
  EXPECT_TRUE(sets[1].temporal);
}

}  // namespace
}  // namespace fusion::ecg
