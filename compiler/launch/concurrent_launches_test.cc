#include "compiler/launch/concurrent_launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;
using ::testing::ElementsAre;
using testing::KernelOfEachNode;

using Launches = std::vector<std::vector<size_t>>;

DeviceModel Cores(int count) {
  DeviceModel device = testing::Avx512Device();
  device.parallel_units = count;
  return device;
}

LaunchOrder Group(const G& g, const DeviceModel& device, GroupLaunches which = GroupLaunches::kThatGain) {
  Launches launches;
  for (size_t b = 0; b < g.graph().nodes().size(); ++b) launches.push_back({b});
  return GroupConcurrentLaunches(KernelOfEachNode(g.graph()), {}, launches, device, which);
}

// Two kernels of one task each, between them a chain that depends on the first.
TEST(ConcurrentLaunches, SmallUnlikeKernelsMoveTogether) {
  G g;
  const V a = g.Op("Exp", {g.In({1024})});
  g.Out(g.Op("Neg", {a}));
  g.Out(g.Op("Tanh", {g.In({1024})}));
  const LaunchOrder order = Group(g, Cores(2));
  EXPECT_EQ(order.launches, (Launches{{0}, {2}, {1}}));
  EXPECT_THAT(order.concurrent, ElementsAre(false, true, false));
}

// A bundle that was planned for one core may get two.
TEST(ConcurrentLaunches, OneCoreCountsAsTwo) {
  G g;
  g.Out(g.Op("Exp", {g.In({1024})}));
  g.Out(g.Op("Tanh", {g.In({1024})}));
  EXPECT_THAT(Group(g, Cores(1)).concurrent, ElementsAre(false, true));
}

// Each fills the cores for milliseconds, so together they would save a barrier only.
TEST(ConcurrentLaunches, LargeKernelsRunOneAfterAnother) {
  G g;
  g.Out(g.Op("Exp", {g.In({4096, 1024})}));
  g.Out(g.Op("Tanh", {g.In({4096, 1024})}));
  EXPECT_THAT(Group(g, Cores(2)).concurrent, ElementsAre(false, false));
  EXPECT_THAT(Group(g, Cores(2), GroupLaunches::kAllThatMay).concurrent, ElementsAre(false, true));
}

TEST(ConcurrentLaunches, AChainIsNeverGrouped) {
  G g;
  V x = g.In({64});
  for (const char* op : {"Exp", "Tanh", "Neg"}) x = g.Op(op, {x});
  g.Out(x);
  const LaunchOrder order = Group(g, Cores(8), GroupLaunches::kAllThatMay);
  EXPECT_EQ(order.launches, (Launches{{0}, {1}, {2}}));
  EXPECT_THAT(order.concurrent, ElementsAre(false, false, false));
}

// The readers of a value that lies in another one's memory wait for all who write that memory.
TEST(ConcurrentLaunches, ReadersOfAnElidedConcatWaitForItsParts) {
  G g;
  const V a = g.Op("Exp", {g.In({64})}), b = g.Op("Tanh", {g.In({64})});
  const V joined = g.Op("Concat", {a, b}, {{"axis", int64_t{0}}});
  g.Out(g.Op("Neg", {joined}));
  ElidedCopies elided;
  elided.fusion_blocks = {2};
  elided.values[a] = {joined, 0};
  elided.values[b] = {joined, 4 * 64};
  const LaunchOrder order = GroupConcurrentLaunches(KernelOfEachNode(g.graph()), elided, {{0}, {1}, {3}}, Cores(2));
  EXPECT_EQ(order.launches, (Launches{{0}, {1}, {3}}));
  EXPECT_THAT(order.concurrent, ElementsAre(false, true, false));
}

}  // namespace
}  // namespace fusion
