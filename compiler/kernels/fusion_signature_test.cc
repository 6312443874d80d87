#include "compiler/kernels/fusion_signature.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;

FusionSignature Sign(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes, const ValueLayouts& layouts = {}) {
  return SignFusionBlock(graph, nodes, LiveOutOf(graph, nodes), layouts);
}

// Two layers of one structure in a graph; nodes 0..2 and 3..5.
G TwoLayers(double scale = 2) {
  G g;
  V x = g.In({8, 128});
  for (const double by : {2.0, scale}) {
    x = g.Op("Add", {g.Op("MatMul", {x, g.Weight({128, 128})}), g.Weight({128})});
    x = g.Op("Mul", {x, g.Scalar(by)});
  }
  g.Out(x);
  return g;
}

TEST(FusionSignature, LayersOfOneStructureAreOneKernel) {
  const G g = TwoLayers();
  const FusionSignature first = Sign(g.graph(), {0, 1, 2}), second = Sign(g.graph(), {3, 4, 5});
  EXPECT_EQ(first.text, second.text);
  const DeviceModel device = testing::Avx512Device();
  const auto made = [&](const std::vector<ecg::NodeId>& nodes) {
    return *MakeFusionKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes), {}, device);
  };
  const FusionKernel moved = WithValues(made({0, 1, 2}), first.values, second.values), direct = made({3, 4, 5});
  EXPECT_EQ(moved.key, direct.key);
  ASSERT_EQ(moved.args.size(), direct.args.size());
  for (size_t a = 0; a < moved.args.size(); ++a) EXPECT_EQ(moved.args[a].value, direct.args[a].value) << a;
}

TEST(FusionSignature, WhatAKernelMayReadCounts) {
  // The scale is an immediate in the kernel.
  EXPECT_NE(Sign(TwoLayers(3).graph(), {0, 1, 2}).text, Sign(TwoLayers(3).graph(), {3, 4, 5}).text);
  const ecg::Graph graph = TwoLayers().graph();
  const ValueLayouts blocked = {{graph.node(2).outputs[0], Layout{1, 16}}};
  EXPECT_NE(Sign(graph, {0, 1, 2}).text, Sign(graph, {0, 1, 2}, blocked).text);
  EXPECT_NE(Sign(graph, {0, 1}).text, Sign(graph, {3, 4, 5}).text);
  // The other readers of a value decide whether it is stored.
  EXPECT_NE(SignFusionBlock(graph, {0, 1}, {graph.node(1).outputs[0]}, {}).text,
            SignFusionBlock(graph, {0, 1}, {graph.node(0).outputs[0], graph.node(1).outputs[0]}, {}).text);
}

TEST(FusionSignature, IndexTablesCountByIdentity) {
  const auto gather = [](int64_t from) {
    std::vector<int64_t> indices(100);
    for (size_t k = 0; k < indices.size(); ++k) indices[k] = (from + static_cast<int64_t>(k)) % 50;
    G g;
    g.Out(g.Op("Gather", {g.In({50, 4}), g.Const(Tensor::From(DType::kI64, {100}, indices))}));
    return g;
  };
  const G a = gather(0), b = gather(1);
  EXPECT_NE(Sign(a.graph(), {0}).text, Sign(b.graph(), {0}).text);
}

TEST(FusionSignature, OpaqueConstantsCountByTheirType) {
  ecg::Graph graph;
  const V x = graph.AddInput("x", {DType::kF32, {50, 4}});
  for (const int64_t at : {3, 7}) {
    for (const bool opaque : {false, true}) {
      Tensor index = Tensor::From<int64_t>(DType::kI64, {}, {at});
      const V i = opaque ? graph.AddOpaqueConstant("i", std::move(index)) : graph.AddConstant("i", std::move(index));
      const ecg::NodeId node = graph.AddNode("Gather", "row", {x, i}, {}, {{DType::kF32, {4}}});
      graph.AddOutput(graph.node(node).outputs[0], absl::StrCat("y", node));
    }
  }
  EXPECT_NE(Sign(graph, {0}).text, Sign(graph, {2}).text);
  EXPECT_EQ(Sign(graph, {1}).text, Sign(graph, {3}).text);
  const auto key = [&](ecg::NodeId node) {
    return MakeFusionKernel(graph, {node}, LiveOutOf(graph, {node}), {}, testing::Avx512Device())->key;
  };
  EXPECT_NE(key(0), key(2));
  EXPECT_EQ(key(1), key(3)) << "the kernel loads its index";
}

TEST(FusionSignature, OperandsThatAreTheSameDifferFromEqualOnes) {
  G g;
  const V x = g.In({4, 4}), y = g.In({4, 4});
  g.Out(g.Op("Mul", {x, x}));
  g.Out(g.Op("Mul", {x, y}));
  EXPECT_NE(Sign(g.graph(), {0}).text, Sign(g.graph(), {1}).text);
}

}  // namespace
}  // namespace fusion
