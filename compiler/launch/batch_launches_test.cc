#include "compiler/launch/batch_launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;
using ::testing::ElementsAre;
using testing::KernelOfEachNode;

DeviceModel ManyCores() {
  DeviceModel device = testing::Avx512Device();
  device.parallel_units = 100000;
  return device;
}

using Launches = std::vector<std::vector<size_t>>;

// A shape with fewer tasks than cores, but enough work to wake the cores.
const Shape kRows = {4, 1 << 18};

TEST(BatchLaunches, TowersAreBatchesLayerByLayer) {
  G g;
  for (int tower = 0; tower < 3; ++tower) g.Out(g.Op("Exp", {g.Op("Tanh", {g.In(kRows)})}));
  const auto kernels = KernelOfEachNode(g.graph());
  EXPECT_THAT(BatchLaunches(kernels, {}, ManyCores()), ElementsAre(ElementsAre(0, 2, 4), ElementsAre(1, 3, 5)));
  EXPECT_EQ(BatchLaunches(kernels, {}, ManyCores(), BatchKernels::kNone), (Launches{{0}, {1}, {2}, {3}, {4}, {5}}));
}

TEST(BatchLaunches, AChainIsNone) {
  G g;
  V x = g.In(kRows);
  for (int i = 0; i < 3; ++i) x = g.Op("Exp", {x});
  g.Out(x);
  EXPECT_EQ(BatchLaunches(KernelOfEachNode(g.graph()), {}, ManyCores()), (Launches{{0}, {1}, {2}}));
}

// Equal kernels at different depths depend on each other through another kernel.
TEST(BatchLaunches, ReadersComeBehindAllThatTheyRead) {
  G g;
  const V a = g.Op("Exp", {g.In(kRows)});
  const V b = g.Op("Tanh", {a});
  const V c = g.Op("Exp", {g.Op("Neg", {g.In(kRows)})});
  const V d = g.Op("Exp", {b});
  g.Out(g.Op("Add", {c, d}));
  // 0 Exp, 1 Tanh, 2 Neg, 3 Exp behind 2, 4 Exp behind 1, 5 Add: 3 is one step from the start, 4 is two.
  EXPECT_EQ(BatchLaunches(KernelOfEachNode(g.graph()), {}, ManyCores()), (Launches{{0}, {1}, {2}, {3}, {4}, {5}}));
}

TEST(BatchLaunches, PartsOfAnElidedConcat) {
  G g;
  const V a = g.Op("Exp", {g.In(kRows)}), b = g.Op("Exp", {g.In(kRows)});
  const V joined = g.Op("Concat", {a, b}, {{"axis", int64_t{0}}});
  g.Out(g.Op("Neg", {joined}));
  ElidedCopies elided;
  elided.fusion_blocks = {2};
  elided.values[a] = {joined, 0};
  elided.values[b] = {joined, 4 * 4 << 18};
  EXPECT_THAT(BatchLaunches(KernelOfEachNode(g.graph()), elided, ManyCores()),
              ElementsAre(ElementsAre(0, 1), ElementsAre(3)));
}

TEST(BatchLaunches, WhatFillsTheDeviceOrIsTooLittleStaysAlone) {
  G large, little;
  for (int tower = 0; tower < 2; ++tower) {
    large.Out(large.Op("Exp", {large.In({4096, 4096})}));
    little.Out(little.Op("Exp", {little.In({8})}));
  }
  DeviceModel two = testing::Avx512Device();
  two.parallel_units = 2;
  EXPECT_EQ(BatchLaunches(KernelOfEachNode(large.graph()), {}, two), (Launches{{0}, {1}}));
  EXPECT_EQ(BatchLaunches(KernelOfEachNode(little.graph()), {}, ManyCores()), (Launches{{0}, {1}}));
}

// Two results of 12 MB fit into the largest cache of 32 MB, three do not.
TEST(BatchLaunches, ResultsStayInTheCache) {
  G g;
  for (int tower = 0; tower < 5; ++tower) g.Out(g.Op("Exp", {g.In({3, 1 << 20})}));
  DeviceModel device = ManyCores();
  device.memory.back().size_bytes = 0;
  device.memory.insert(device.memory.end() - 1, {});
  device.memory[device.memory.size() - 2].size_bytes = 32 << 20;
  EXPECT_EQ(BatchLaunches(KernelOfEachNode(g.graph()), {}, device), (Launches{{0, 1}, {2, 3}, {4}}));
}

}  // namespace
}  // namespace fusion
