#include "compiler/pipeline/precision_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/analysis/derived.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/simplify/passes.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;

ecg::Graph Halved(const G& g) {
  ecg::Graph halved = simplify::Simplify(StoreAsHalves(g.graph()));
  EXPECT_TRUE(ecg::Verify(halved).ok()) << ecg::Verify(halved);
  for (size_t i = 0; i < halved.inputs().size(); ++i) {
    EXPECT_EQ(halved.value(halved.inputs()[i]).type, g.graph().value(g.graph().inputs()[i]).type);
  }
  for (size_t o = 0; o < halved.outputs().size(); ++o) {
    EXPECT_EQ(halved.value(halved.outputs()[o]).type, g.graph().value(g.graph().outputs()[o]).type);
  }
  return halved;
}

const ecg::Node* Find(const ecg::Graph& graph, const std::string& op) {
  for (const ecg::Node& node : graph.nodes()) {
    if (node.op == op) return &node;
  }
  return nullptr;
}

DType OutputOf(const ecg::Graph& graph, const std::string& op) {
  const ecg::Node* node = Find(graph, op);
  EXPECT_NE(node, nullptr) << op;
  return node == nullptr ? DType::kBool : graph.value(node->outputs[0]).type.dtype;
}

TEST(StoreAsHalves, WeightsAndValuesAreHalves) {
  G g;
  const V y = g.Op("MatMul", {g.In({4, 8}), g.Weight({8, 6})});
  g.Out(g.Op("Relu", {g.Op("Add", {y, g.Weight({6})})}));
  const ecg::Graph halved = Halved(g);
  for (const char* op : {"MatMul", "Add", "Relu"}) EXPECT_EQ(OutputOf(halved, op), DType::kF16) << op;
  for (const ecg::Value& value : halved.values()) {
    if (value.constant) EXPECT_EQ(value.type.dtype, DType::kF16);
  }
  // There is one cast of the input and one of the output.
  EXPECT_EQ(std::count_if(halved.nodes().begin(), halved.nodes().end(),
                          [](const ecg::Node& node) { return node.op == "Cast"; }),
            2);
}

TEST(StoreAsHalves, ParametersAreConvertedWithTheirOperator) {
  G g;
  g.Out(g.Op("Clip", {g.In({4, 8}), g.Scalar(0), g.Scalar(6)}));
  EXPECT_EQ(OutputOf(Halved(g), "Clip"), DType::kF16);
}

TEST(StoreAsHalves, WhatIsNoFloatStays) {
  G g;
  const V x = g.In({4, 8});
  g.Out(g.Op("ArgMax", {x}, {{"axis", int64_t{1}}}));
  g.Out(g.Op("Add", {g.In({3}, DType::kI32), g.In({3}, DType::kI32)}));
  const ecg::Graph halved = Halved(g);
  EXPECT_EQ(halved.nodes().size(), g.graph().nodes().size());
}

TEST(StoreAsHalves, TheMostNegativeFloatStaysFinite) {
  G g;
  const float most = -std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  g.Out(g.Op("Add", {g.In({3}), g.Const(Tensor::From<double>(DType::kF32, {3}, {most, -infinity, 1}))}));
  const ecg::Graph halved = Halved(g);
  const ecg::Value& constant = halved.value(Find(halved, "Add")->inputs[1]);
  ASSERT_TRUE(constant.constant.has_value());
  EXPECT_EQ(constant.constant->GetDouble(0), -65504);
  EXPECT_EQ(constant.constant->GetDouble(1), -infinity);
  EXPECT_EQ(constant.constant->GetDouble(2), 1);
}

}  // namespace
}  // namespace fusion
