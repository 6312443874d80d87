#include "compiler/pipeline/block_kernel.h"

#include <gtest/gtest.h>

#include "compiler/backends/cpu/testing/run_block.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;

BlockKernel Kernel(const G& g) {
  std::vector<ecg::NodeId> nodes;
  for (size_t n = 0; n < g.graph().nodes().size(); ++n) nodes.push_back(static_cast<int>(n));
  absl::StatusOr<BlockKernel> kernel =
      MakeBlockKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes), {}, testing::Avx512Device());
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

G Layer(int64_t width, int unrelated) {
  G g;
  for (int i = 0; i < unrelated; ++i) g.In({3});
  const V x = g.In({8, 16});
  g.Out(g.Op("Relu", {g.Op("Add", {g.Op("MatMul", {x, g.Weight({16, width})}), g.Weight({width})})}));
  return g;
}

TEST(BlockKernel, EqualBlocksHaveOneKey) {
  const BlockKernel a = Kernel(Layer(32, 0)), b = Kernel(Layer(32, 3)), c = Kernel(Layer(48, 0));
  EXPECT_EQ(a.key, b.key);  // other names, other weights
  EXPECT_EQ(movement::Print(a.kernel), movement::Print(b.kernel));
  EXPECT_NE(a.key, c.key);
}

TEST(BlockKernel, ImmediatesAreInTheKey) {
  auto scaled = [](double by) {
    G g;
    g.Out(g.Op("Mul", {g.In({8, 16}), g.Scalar(by)}));
    return Kernel(g).key;
  };
  EXPECT_EQ(scaled(2), scaled(2));
  EXPECT_NE(scaled(2), scaled(3));
}

TEST(BlockKernel, ArgumentsStandForValues) {
  const G g = Layer(40, 0);
  const BlockKernel kernel = Kernel(g);
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

TEST(LiveOut, WhatOthersReadAndWhatIsReturned) {
  G g;
  const V x = g.In({4}), a = g.Op("Exp", {x}), b = g.Op("Neg", {a}), c = g.Op("Add", {b, a});
  g.Out(c);
  EXPECT_EQ(LiveOutOf(g.graph(), {0, 1}), (std::vector<V>{a, b}));
  EXPECT_EQ(LiveOutOf(g.graph(), {0, 1, 2}), (std::vector<V>{c}));
}

TEST(PackedConstant, ReordersAndPads) {
  // source: [3, 5]; packed: (n//4, k, n%4) with zeros past n = 5.
  const te::Axis tile{0, 2}, k{1, 3}, lane{2, 4};
  const te::Index n = te::Index(tile) * 4 + te::Index(lane);
  movement::Pack pack;
  pack.axes = {tile, k, lane};
  pack.address = te::Index(k) * 5 + n;
  pack.pred = {{n, te::Cmp::kLt, te::Index(5)}};
  std::vector<double> values(15);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Tensor packed = PackedConstant(pack, Tensor::From<double>(DType::kF32, {3, 5}, values));
  ASSERT_EQ(packed.num_elements(), 24);
  for (int64_t t = 0; t < 2; ++t) {
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t l = 0; l < 4; ++l) {
        const int64_t column = 4 * t + l;
        EXPECT_EQ(packed.GetDouble((t * 3 + row) * 4 + l), column < 5 ? static_cast<double>(row * 5 + column) : 0);
      }
    }
  }
}

}  // namespace
}  // namespace fusion
