#include "compiler/kernels/fusion_kernel.h"

#include <gtest/gtest.h>

#include <numeric>

#include "compiler/bundle/emit.h"
#include "compiler/ecg/run_checks.h"
#include "compiler/ecg/text.h"
#include "compiler/movement/in_place.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/simplify/passes.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;

FusionKernel Kernel(const G& g, const DeviceModel& device = testing::Avx512Device()) {
  std::vector<ecg::NodeId> nodes;
  for (size_t n = 0; n < g.graph().nodes().size(); ++n) nodes.push_back(static_cast<int>(n));
  absl::StatusOr<FusionKernel> kernel = MakeFusionKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes), {}, device);
  return std::move(kernel).value();
}

G Layer(int64_t width, int unrelated) {
  G g;
  for (int i = 0; i < unrelated; ++i) g.In({3});
  const V x = g.In({8, 16});
  g.Out(g.Op("Relu", {g.Op("Add", {g.Op("MatMul", {x, g.Weight({16, width})}), g.Weight({width})})}));
  return g;
}

TEST(FusionKernel, EqualFusionBlocksHaveOneKey) {
  const FusionKernel a = Kernel(Layer(32, 0)), b = Kernel(Layer(32, 3)), c = Kernel(Layer(48, 0));
  EXPECT_EQ(a.key, b.key);  // they differ only in names and weights
  EXPECT_EQ(movement::Print(a.kernel), movement::Print(b.kernel));
  EXPECT_NE(a.key, c.key);
}

TEST(FusionKernel, ImmediatesAreInTheKey) {
  auto scaled = [](double by) {
    G g;
    g.Out(g.Op("Mul", {g.In({8, 16}), g.Scalar(by)}));
    return Kernel(g).key;
  };
  EXPECT_EQ(scaled(2), scaled(2));
  EXPECT_NE(scaled(2), scaled(3));
}

// A bundle requires the extension only where a kernel has products of bytes.
TEST(FusionKernel, TextsAreGroupedByTheInstructionsTheyNeed) {
  G bytes;
  const V a = bytes.In({8, 16}, DType::kU8), b = bytes.In({16, 32}, DType::kI8);
  bytes.Out(bytes.Op("MatMulInteger", {a, b}));
  const DeviceModel device = testing::VnniDevice();
  const FusionKernel floats = Kernel(Layer(32, 0), device), wider = Kernel(Layer(48, 0), device),
                     products = Kernel(bytes, device);
  const KernelTexts texts = PrintKernels({&floats, &products, &wider}, device);
  ASSERT_EQ(texts.files.size(), 2u);
  EXPECT_EQ(texts.places[0].file, texts.places[2].file);
  EXPECT_EQ(texts.files[texts.places[0].file].instructions, (Instructions{"avx512", "x86-64-v4"}));
  EXPECT_EQ(texts.files[texts.places[1].file].instructions, (Instructions{device.isa, device.march}));
}

// The rows of a linear Resize are no value of the graph. Between blocked channels they are blocked, too.
TEST(FusionKernel, WhatAnOperatorComputesInBetweenLiesAsItsOperands) {
  G g;
  const V x = g.Op("Relu", {g.In({1, 32, 14, 14})});
  const V y = g.Op("Resize", {x, ecg::kNone, ecg::kNone, g.Ints({1, 32, 28, 28})}, {{"mode", std::string("linear")}});
  g.Out(y);
  const std::vector<ecg::NodeId> nodes = {g.graph().value(x).producer, g.graph().value(y).producer};
  const Layout blocked{1, 16};
  const DeviceModel device = testing::Avx512Device();
  const absl::StatusOr<FusionKernel> kernel =
      MakeFusionKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes),
                       {{g.graph().node(nodes[0]).inputs[0], blocked}, {x, blocked}, {y, blocked}}, device);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  int steps = 0;
  for (const movement::Phase& phase : kernel->kernel.phases) {
    for (const movement::Step& step : phase.steps) {
      ++steps;
      EXPECT_TRUE(step.Is<movement::VectorMap>()) << movement::Print(kernel->kernel);
      const te::Axis lanes{movement::VectorAxisOf(step), 16};
      te::Visit(step.body[0], [&](const te::ScalarNode& node) {
        if (node.kind != te::ScalarKind::kLoad || node.dtype != DType::kF32) return;
        EXPECT_NE(te::ClassifyLanes(node.indices[0], lanes, 16), te::LaneAccess::kOther);
      });
    }
  }
  EXPECT_GT(steps, 1);
}

TEST(FusionKernel, AResidualIsAddedInPlace) {
  G g;
  const V x = g.In({8, 16}), residual = g.In({8, 40});
  g.Out(g.Op("Relu", {g.Op("Add", {g.Op("MatMul", {x, g.Weight({16, 40})}), residual})}));
  const FusionKernel kernel = Kernel(g);
  const std::vector<movement::InPlacePair> pairs = movement::InPlacePairs(kernel.kernel);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(kernel.kernel.buffers[pairs[0].in].elements, 8 * 40);
  EXPECT_FALSE(kernel.args[pairs[0].in].written);
  EXPECT_TRUE(kernel.args[pairs[0].out].written);
}

// The weights are larger than the second-level cache of any model device, so panels are the outermost loop, and all
// rows read one panel while the next is fetched.
TEST(FusionKernel, LargeWeightsAreStreamedOnceAndPrefetched) {
  G g;
  g.Out(g.Op("MatMul", {g.In({128, 768}), g.Weight({768, 3072})}));
  const FusionKernel kernel = Kernel(g);
  const movement::Phase& phase = kernel.kernel.phases[0];
  const auto* tile = phase.steps.back().As<movement::RegisterTile>();
  ASSERT_NE(tile, nullptr);
  ASSERT_EQ(tile->prefetch.size(), 1u);
  const movement::Prefetch& prefetch = tile->prefetch[0];
  EXPECT_TRUE(kernel.kernel.buffers[prefetch.buffer].is_constant);
  EXPECT_EQ(prefetch.panel, 768 * tile->outer_count * 16);
  EXPECT_EQ(prefetch.tiles, (128 + tile->row_count - 1) / tile->row_count);
  EXPECT_GT(prefetch.ahead, 0);
}

TEST(FusionKernel, ArgumentsStandForValues) {
  const G g = Layer(40, 0);
  const FusionKernel kernel = Kernel(g);
  int inputs = 0, outputs = 0, constants = 0, packed = 0;
  for (const KernelArg& arg : kernel.args) {
    inputs += arg.kind == KernelArg::Kind::kValue && !arg.written;
    outputs += arg.kind == KernelArg::Kind::kValue && arg.written;
    constants += arg.kind == KernelArg::Kind::kConstant;
    packed += arg.pack >= 0;
  }
  EXPECT_EQ(inputs, 1);
  EXPECT_EQ(outputs, 1);
  EXPECT_EQ(constants, 2);
  EXPECT_GE(packed, 1);
  EXPECT_EQ(kernel.flops, 2.0 * 8 * 16 * 40 + 2 * 8 * 40);
}

// The key of the whole graph as one fusion block.
std::string KeyOf(const ecg::Graph& graph, const DeviceModel& device) {
  std::vector<ecg::NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  const absl::StatusOr<FusionKernel> kernel = MakeFusionKernel(graph, nodes, LiveOutOf(graph, nodes), {}, device);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? kernel->key : "";
}

TEST(OpenComposites, OpenedAndFusedAgainIsTheKernelOfTheComposite) {
  std::vector<std::pair<std::string, G>> graphs;
  const auto add = [&](const std::string& op, const std::vector<Shape>& inputs, const G::Attrs& attrs = {}) {
    G g;
    std::vector<V> values;
    for (const Shape& shape : inputs) values.push_back(g.In(shape));
    g.Out(g.Op("Neg", {g.Op(op, values, attrs)}));
    graphs.emplace_back(op, g);
  };
  add("Softmax", {{6, 40}}, {{"axis", int64_t{-1}}});
  add("LogSoftmax", {{6, 40}}, {{"axis", int64_t{-1}}});
  add("LayerNormalization", {{6, 64}, {64}, {64}}, {{"axis", int64_t{-1}}});
  add("InstanceNormalization", {{2, 3, 30}, {3}, {3}});
  add("Conv", {{1, 16, 8, 9}, {24, 16, 3, 3}, {24}}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  for (const auto& [name, g] : graphs) {
    const ecg::Graph opened = simplify::OpenComposites(g.graph());
    EXPECT_TRUE(ecg::Verify(opened).ok()) << name << ecg::Verify(opened);
    EXPECT_GT(opened.nodes().size(), g.graph().nodes().size()) << name;
    for (const DeviceModel& device : {testing::Avx512Device(), testing::CudaTestDevice(64)}) {
      EXPECT_EQ(KeyOf(opened, device), KeyOf(g.graph(), device)) << name << " " << device.kind;
    }
  }
}

TEST(OpenComposites, WhatHandsNothingOverStaysClosed) {
  G g;
  g.Out(g.Op("Gelu", {g.Op("MatMul", {g.In({4, 8}), g.Weight({8, 16})})}));
  EXPECT_EQ(ecg::Print(simplify::OpenComposites(g.graph())), ecg::Print(g.graph()));
}

TEST(LiveOut, WhatOthersReadAndWhatIsReturned) {
  G g;
  const V x = g.In({4}), a = g.Op("Exp", {x}), b = g.Op("Neg", {a}), c = g.Op("Add", {b, a});
  g.Out(c);
  EXPECT_EQ(LiveOutOf(g.graph(), {0, 1}), (std::vector<V>{a, b}));
  EXPECT_EQ(LiveOutOf(g.graph(), {0, 1, 2}), (std::vector<V>{c}));
}

}  // namespace
}  // namespace fusion
