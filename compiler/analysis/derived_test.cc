#include "compiler/analysis/derived.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/analysis/evaluate.h"

namespace fusion::ecg {
namespace {

Graph Parsed(const std::string& text) {
  auto graph = Parse(text);
  return std::move(graph).value();
}

const char kBlock[] = R"(graph g(%x: f32[4, 8]) {
  %w: f32[8, 16] = const #0000000000000000
  %a: f32[4, 16] = MatMul(%x, %w)
  %b: f32[4, 16] = Relu(%a)
  %c: f32[4, 16] = Add(%a, %b)
  return %c
})";

TEST(Derived, FactsOfNodes) {
  const Graph graph = Parsed(kBlock);
  const NodeFacts matmul = DeriveNode(graph, 0);
  EXPECT_EQ(matmul.mapping, ops::MappingType::kManyToMany);
  EXPECT_EQ(matmul.flops, 2.0 * 4 * 8 * 16);
  EXPECT_EQ(matmul.bytes_read, 4 * (4 * 8 + 8 * 16));
  EXPECT_EQ(matmul.bytes_written, 4 * 4 * 16);
  EXPECT_EQ(DeriveNode(graph, 1).mapping, ops::MappingType::kOneToOne);
}

TEST(Derived, RemovableWhenEveryConsumerIsInTheFusionBlock) {
  const Graph graph = Parsed(kBlock);
  const ValueId a = graph.node(0).outputs[0];
  EXPECT_TRUE(IsRemovable(graph, a, [](NodeId) { return true; }));
  EXPECT_FALSE(IsRemovable(graph, a, [](NodeId id) { return id != 2; }));
  EXPECT_FALSE(IsRemovable(graph, graph.outputs()[0], [](NodeId) { return true; }));
  EXPECT_EQ(IntermediateBytes(graph), 2 * 4 * 4 * 16);
}

TEST(Verify, AcceptsWhatIsRightAndNamesWhatIsWrong) {
  EXPECT_TRUE(Verify(Parsed(kBlock)).ok()) << Verify(Parsed(kBlock));
  const absl::Status type = Verify(Parsed("graph g(%x: f32[4]) { %y: f32[5] = Relu(%x) return %y }"));
  EXPECT_EQ(type.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(type.message()), testing::HasSubstr("output 0 is f32[5], the operator makes f32[4]"));
  const absl::Status op = Verify(Parsed("graph g(%x: f32[4]) { %y: f32[4] = Frob(%x) return %y }"));
  EXPECT_THAT(std::string(op.message()), testing::HasSubstr("unknown operator"));
  const absl::Status arity = Verify(Parsed("graph g(%x: f32[4]) { %y: f32[4] = Relu() return %y }"));
  EXPECT_FALSE(arity.ok());
}

TEST(Evaluate, WhatIsKnownAtCompileTime) {
  const Graph graph = Parsed(R"(graph g(%x: f32[4, 8]) {
  %k: f32[3] = const {-1.0, 0.0, 2.0}
  %a: i64[2] = Shape(%x)
  %b: f32[3] = Relu(%k)
  %c: f32[4, 8] = Relu(%x)
  return %a, %b, %c
})");
  EXPECT_FALSE(IsFoldable(graph, graph.node(2), {}));
  ASSERT_TRUE(IsFoldable(graph, graph.node(0), {}));
  ASSERT_TRUE(IsFoldable(graph, graph.node(1), {}));
  EXPECT_FALSE(IsFoldable(graph, graph.node(1), {.output_bytes = 4}));
  auto shape = EvaluateNode(graph, graph.node(0));
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ((*shape)[0].GetInt(0), 4);
  EXPECT_EQ((*shape)[0].GetInt(1), 8);
  auto relu = EvaluateNode(graph, graph.node(1));
  ASSERT_TRUE(relu.ok()) << relu.status();
  EXPECT_EQ((*relu)[0].GetDouble(0), 0);
  EXPECT_EQ((*relu)[0].GetDouble(2), 2);
}

}  // namespace
}  // namespace fusion::ecg
