#include "compiler/plan/order_fusion_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::ElementsAre;

// 0 and 2 read %x; 1 reads 0; 3 reads 1 and 2.
ecg::Graph Diamond() {
  auto graph = ecg::Parse(R"(graph g(%x: f32[8]) {
    %a: f32[8] = Relu(%x)
    %b: f32[8] = Exp(%a)
    %c: f32[8] = Neg(%x)
    %d: f32[8] = Add(%b, %c)
    return %d
  })");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

TEST(OrderFusionBlocks, ProducersComeFirstAndThenSmallerNodes) {
  const auto ordered = OrderFusionBlocks(Diamond(), {{3}, {2}, {1}, {0}});
  ASSERT_TRUE(ordered.has_value());
  EXPECT_THAT(*ordered, ElementsAre(FusionBlock{0}, FusionBlock{1}, FusionBlock{2}, FusionBlock{3}));
  // {0, 2} runs before {1}, although a node of it stands behind 1.
  EXPECT_THAT(*OrderFusionBlocks(Diamond(), {{1}, {3}, {0, 2}}),
              ElementsAre(FusionBlock{0, 2}, FusionBlock{1}, FusionBlock{3}));
}

TEST(OrderFusionBlocks, FusionBlocksThatWaitForEachOtherHaveNoOrder) {
  EXPECT_FALSE(OrderFusionBlocks(Diamond(), {{0, 3}, {1}, {2}}).has_value());
}

// Who recomputes a node does not wait for its owner, but for what the node reads.
TEST(OrderFusionBlocks, RecomputedNodesAreReadWhereTheyAreRecomputed) {
  FusionBlock last = {1, 3}, other = {0, 2};
  last.recomputed = {0};
  const auto ordered = OrderFusionBlocks(Diamond(), {last, {0}, {2}});
  ASSERT_TRUE(ordered.has_value());
  EXPECT_THAT(*ordered, ElementsAre(FusionBlock{0}, FusionBlock{2}, last));
  other.nodes = {0};
  last.nodes = {1, 2, 3};
  EXPECT_THAT(*OrderFusionBlocks(Diamond(), {other, last}), ElementsAre(other, last)) << "neither waits for the other";
}

}  // namespace
}  // namespace fusion
