#include "compiler/plan/planners/graph_turbo/chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A core with 64 KiB of its own. %a and %b have 128 KiB each, %c, of every second row and column, 32.
constexpr char kImages[] = R"(graph g(%x: f32[1, 8, 64, 64]) {
  %w: f32[8, 8, 3, 3] = const #0000000000000001
  %a: f32[1, 8, 64, 64] = Conv(%x, %w) {pads = ints[1, 1, 1, 1]}
  %b: f32[1, 8, 64, 64] = Conv(%a, %w) {pads = ints[1, 1, 1, 1]}
  %c: f32[1, 8, 32, 32] = Conv(%b, %w) {pads = ints[1, 1, 1, 1], strides = ints[2, 2]}
  %d: f32[1, 8, 32, 32] = Conv(%c, %w) {pads = ints[1, 1, 1, 1]}
  return %d
})";

DeviceModel Core() {
  DeviceModel device;
  device.memory = {{"L2", 64 << 10, 1e10, false}, {"DRAM", 0, 1e9, true}};
  return device;
}

// The chains of a plan in which every operator is a kernel.
std::vector<Chain> Chains(const std::string& text, const DeviceModel& device) {
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  FusionPlan plan;
  for (ecg::NodeId id = 0; id < static_cast<int>(graph->nodes().size()); ++id) plan.fusion_blocks.push_back({id});
  auto chains = ChainsOf(*graph, plan, device);
  EXPECT_TRUE(chains.ok()) << chains.status();
  return chains.ok() ? *std::move(chains) : std::vector<Chain>();
}

// The third image is handed over within the cache, so that its reader is no layer of the chain.
TEST(Chains, LayersAroundValuesThatLeaveTheCache) {
  const std::vector<Chain> chains = Chains(kImages, Core());
  ASSERT_EQ(chains.size(), 1u);
  EXPECT_THAT(chains[0].layers, ElementsAre(0, 1, 2));
  EXPECT_THAT(chains[0].beyond, ElementsAre(Pair(0, 1), Pair(1, 2)));
}

TEST(Chains, NoneWhereEverythingStays) {
  DeviceModel large = Core();
  large.memory[0].size_bytes = 1 << 20;
  EXPECT_THAT(Chains(kImages, large), IsEmpty());
  EXPECT_THAT(Chains(kImages, DeviceModel()), IsEmpty()) << "no memory is known";
}

TEST(Chains, WorkItemsInStepAreNoCores) {
  DeviceModel lanes = Core();
  lanes.work_group_size = 64;
  EXPECT_THAT(Chains(kImages, lanes), IsEmpty());
}

// A value that the model returns has to exist as a whole.
TEST(Chains, EndWhereAValueIsReturned) {
  std::string text = kImages;
  text.replace(text.find("return %d"), 9, "return %d, %b");
  const std::vector<Chain> chains = Chains(text, Core());
  ASSERT_EQ(chains.size(), 1u);
  EXPECT_THAT(chains[0].layers, ElementsAre(0, 1));
}

// A sort is no expression: nothing infers the part of its operand that a part of its result needs.
TEST(Chains, RoutinesAreNoLayers) {
  const std::vector<Chain> chains = Chains(R"(graph g(%x: f32[64, 1024]) {
    %k: i64[1] = const {1024}
    %a: f32[64, 1024] = Neg(%x)
    %b: f32[64, 1024] = Abs(%a)
    %t: f32[64, 1024], %i: i64[64, 1024] = TopK(%b, %k)
    %c: f32[64, 1024] = Neg(%t)
    return %c, %i
  })",
                                           Core());
  ASSERT_EQ(chains.size(), 1u);
  EXPECT_THAT(chains[0].layers, ElementsAre(0, 1));
}

}  // namespace
}  // namespace fusion::graph_turbo
