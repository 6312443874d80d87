#include "compiler/plan/planners/graph_turbo/place_buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/order.h"
#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;

PlacedBuffer Buffer(int64_t birth, int64_t death, double bytes) {
  PlacedBuffer buffer;
  buffer.birth = birth;
  buffer.death = death;
  buffer.bytes = bytes;
  return buffer;
}

std::vector<BufferScope> ScopesOf(const std::vector<PlacedBuffer>& buffers) {
  std::vector<BufferScope> scopes;
  for (const PlacedBuffer& buffer : buffers) scopes.push_back(buffer.scope);
  return scopes;
}

constexpr BufferScope kLb = BufferScope::kLocal, kGb = BufferScope::kGlobal, kDdr = BufferScope::kDdr;

// Figure 12: out_1 lives across seven tasks; when the fourth tensor comes, it is the one that leaves.
TEST(PlaceBuffers, TheLongestLivedIsSpilled) {
  std::vector<PlacedBuffer> buffers = {Buffer(1, 8, 10), Buffer(5, 7, 10), Buffer(6, 7, 10), Buffer(7, 8, 10)};
  SpillLongestLived({1, 30, 1000}, &buffers);
  EXPECT_THAT(ScopesOf(buffers), ElementsAre(kGb, kLb, kLb, kLb));
  for (PlacedBuffer& buffer : buffers) buffer.scope = kLb;
  SpillLongestLived({1, 40, 1000}, &buffers);
  EXPECT_THAT(ScopesOf(buffers), ElementsAre(kLb, kLb, kLb, kLb));
}

// The paper's difference from prior work: not the largest.
TEST(PlaceBuffers, TheLargestIsNotSpilled) {
  std::vector<PlacedBuffer> buffers = {Buffer(0, 9, 4), Buffer(3, 4, 28)};
  SpillLongestLived({1, 30, 1000}, &buffers);
  EXPECT_THAT(ScopesOf(buffers), ElementsAre(kGb, kLb));
}

TEST(PlaceBuffers, WhatOverflowsTheGbGoesToDdr) {
  std::vector<PlacedBuffer> buffers = {Buffer(0, 9, 40), Buffer(1, 3, 40), Buffer(4, 5, 8)};
  SpillLongestLived({1, 30, 50}, &buffers);
  EXPECT_THAT(ScopesOf(buffers), ElementsAre(kDdr, kGb, kLb));
}

TEST(PlaceBuffers, ABufferThatIsDeadMakesRoom) {
  std::vector<PlacedBuffer> buffers = {Buffer(0, 1, 20), Buffer(2, 3, 20), Buffer(3, 4, 10)};
  SpillLongestLived({1, 30, 50}, &buffers);
  EXPECT_THAT(ScopesOf(buffers), ElementsAre(kLb, kLb, kLb));
}

TEST(PlaceBuffers, ABindingSpreadsABufferOverLbs) {
  std::vector<PlacedBuffer> buffers = {Buffer(0, 1, 80), Buffer(2, 3, 80)};
  buffers[0].cores = 4;
  buffers[1].cores = 2;
  SpillLongestLived({8, 20, 1000}, &buffers);
  EXPECT_THAT(ScopesOf(buffers), ElementsAre(kLb, kGb));
}

TEST(PlaceBuffers, StepsAreOperatorsAndMovements) {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  const Grouping grouping = GroupSubGraphs(graph, {3000, 1.25});
  const InstanceGraph instances = MakeInstances(graph, grouping.sub_graphs);
  const std::vector<int> order = DepthFirstOrder(instances);
  const auto bindings = InferBindings(graph, grouping.sub_graphs, instances, order, 1);
  const auto movements = InsertMovements(graph, grouping.sub_graphs, instances, bindings);
  const auto buffers =
      PlaceBuffers(graph, grouping.sub_graphs, instances, order, bindings, movements, {1, 1 << 20, 1 << 20});
  int outputs = 0, inputs = 0, moved = 0;
  for (const PlacedBuffer& buffer : buffers) {
    outputs += buffer.use == BufferUse::kOutput;
    inputs += buffer.use == BufferUse::kInput;
    moved += buffer.use == BufferUse::kMovement;
    EXPECT_LE(buffer.birth, buffer.death);
    EXPECT_EQ(buffer.scope, kLb);
  }
  EXPECT_EQ(outputs, 15);
  EXPECT_EQ(inputs, 8);
  EXPECT_EQ(moved, 7);
  // The first two instances of the first stage live until the concatenation in front of the second stage's.
  EXPECT_EQ(buffers[1].birth, 0);
  EXPECT_EQ(buffers[1].death, 2);
}

}  // namespace
}  // namespace fusion::graph_turbo
