#include "compiler/plan/fusion_block.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "compiler/ecg/text.h"

namespace fusion {
namespace {

// a feeds b and c, c needs b twice, and the model returns b and c.
class FusionBlockTest : public testing::Test {
 protected:
  ecg::ValueId ResultOf(ecg::NodeId id) const { return graph_.node(id).outputs[0]; }

  const ecg::Graph graph_ = ecg::Parse(R"(graph g(%x: f32[4]) {
      %a: f32[4] = Relu(%x)
      %b: f32[4] = Exp(%a)
      %c: f32[4] = Mul(%b, %b)
      %d: f32[4] = Add(%a, %c)
      return %b, %d
    })")
                                .value();
};

TEST_F(FusionBlockTest, MembersAreOwnedAndRecomputedNodesInOrder) {
  FusionBlock fusion_block = {1, 3};
  fusion_block.recomputed = {0, 2};
  EXPECT_EQ(fusion_block.Members(), (std::vector<ecg::NodeId>{0, 1, 2, 3}));
}

TEST_F(FusionBlockTest, AnEdgeThatOneNodeReadsTwiceIsOneHandOver) {
  const std::vector<HandOver> inner = InnerHandOvers(graph_, {0, 1, 2, 3});
  EXPECT_EQ(inner.size(), 4u);  // a>b, b>c, a>d, c>d
  EXPECT_EQ(std::set<HandOver>(inner.begin(), inner.end()).size(), inner.size());
}

TEST_F(FusionBlockTest, EdgesThatLeaveTheFusionBlockAreNoInnerHandOvers) {
  EXPECT_TRUE(InnerHandOvers(graph_, {0, 2}).empty());
  EXPECT_EQ(InnerHandOvers(graph_, {0, 1}).size(), 1u);
}

TEST_F(FusionBlockTest, WhatIsAskedStandsInPlaceOfTheDefault) {
  FusionBlock fusion_block = {0, 1, 2, 3};
  fusion_block.inner = {{1, 2, ResultOf(1), Scope::kDevice, Scope::kDevice}};
  int asked = 0;
  for (const HandOver& hand_over : InnerHandOvers(graph_, fusion_block))
    asked += hand_over.nearest == Scope::kDevice ? 1 : 0;
  EXPECT_EQ(asked, 1);
}

TEST_F(FusionBlockTest, StoresWhatOthersReadOrTheModelReturns) {
  EXPECT_EQ(LiveOut(graph_, {0, 1}), (std::vector<ecg::ValueId>{ResultOf(0), ResultOf(1)}));
  EXPECT_EQ(LiveOut(graph_, {0, 1, 2, 3}), (std::vector<ecg::ValueId>{ResultOf(1), ResultOf(3)}));
}

TEST_F(FusionBlockTest, WhatEveryReaderRecomputesIsNotStored) {
  FusionBlock fusion_block = {0, 1};
  fusion_block.unread = {ResultOf(0)};
  EXPECT_EQ(LiveOut(graph_, fusion_block), std::vector<ecg::ValueId>{ResultOf(1)});
  FusionBlock reader = {2, 3};
  reader.recomputed = {0};
  EXPECT_EQ(LiveOut(graph_, reader), std::vector<ecg::ValueId>{ResultOf(3)}) << "its owner stores a, if anyone does";
}

}  // namespace
}  // namespace fusion
