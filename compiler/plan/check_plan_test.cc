#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/plan.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class CheckPlanTest : public testing::Test {
 protected:
  CheckPlanTest() {
    auto parsed = ecg::Parse(R"(graph g(%x: f32[4]) {
      %a: f32[4] = Relu(%x)
      %b: f32[4] = Exp(%a)
      %c: f32[4] = Add(%a, %b)
      return %c
    })")
                      .value();
    graph_ = std::move(parsed);
  }
  FusionPlan Plan(const std::vector<std::vector<ecg::NodeId>>& fusion_blocks) {
    FusionPlan plan;
    for (const auto& nodes : fusion_blocks) plan.fusion_blocks.emplace_back(nodes);
    return plan;
  }
  ecg::ValueId ResultOf(ecg::NodeId id) const { return graph_.node(id).outputs[0]; }
  std::string Refusal(const FusionPlan& plan) {
    const absl::Status status = CheckPlan(graph_, plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return std::string(status.message());
  }
  ecg::Graph graph_;
};

TEST_F(CheckPlanTest, AcceptsValidPlans) {
  for (const FusionPlan& plan : {Plan({{0}, {1}, {2}}), Plan({{0, 1}, {2}}), Plan({{0}, {1, 2}}), Plan({{0, 1, 2}})}) {
    EXPECT_TRUE(CheckPlan(graph_, plan).ok()) << CheckPlan(graph_, plan);
  }
}

TEST_F(CheckPlanTest, EveryNodeInOneFusionBlock) {
  EXPECT_THAT(Refusal(Plan({{0}, {1}})), HasSubstr("is in no fusion block"));
  EXPECT_THAT(Refusal(Plan({{0}, {0, 1}, {2}})), HasSubstr("is in two fusion blocks"));
  EXPECT_THAT(Refusal(Plan({{0}, {1}, {2}, {}})), HasSubstr("block 3 is empty"));
  EXPECT_THAT(Refusal(Plan({{0}, {1}, {2}, {7}})), HasSubstr("holds no node 7"));
}

TEST_F(CheckPlanTest, TopologicalOrderAndConvexity) {
  EXPECT_THAT(Refusal(Plan({{1, 0}, {2}})), HasSubstr("block 0 is not in topological order"));
  EXPECT_THAT(Refusal(Plan({{1}, {0}, {2}})), HasSubstr("runs before Relu"));
  // Relu -> Exp -> Add leaves {Relu, Add} and comes back: no order of the fusion blocks is topological.
  EXPECT_THAT(Refusal(Plan({{0, 2}, {1}})), HasSubstr("runs before Exp"));
  EXPECT_THAT(Refusal(Plan({{1}, {0, 2}})), HasSubstr("runs before Relu"));
}

TEST_F(CheckPlanTest, HandOvers) {
  FusionPlan plan = Plan({{0, 1}, {2}});
  plan.fusion_blocks[0].inner = {{0, 1, ResultOf(0), Scope::kDevice, Scope::kDevice}};
  EXPECT_TRUE(CheckPlan(graph_, plan).ok()) << CheckPlan(graph_, plan);
  plan.fusion_blocks[0].inner = {{0, 1, ResultOf(0), Scope::kLane, Scope::kKernel}};
  EXPECT_THAT(Refusal(plan), HasSubstr("may have scopes from lane to kernel"));
  plan.fusion_blocks[0].inner = {{0, 1, ResultOf(0), Scope::kDevice, Scope::kBlock}};
  EXPECT_THAT(Refusal(plan), HasSubstr("may have scopes from device to block"));
  plan.fusion_blocks[0].inner = {{0, 2, ResultOf(0)}};  // the consumer is in another fusion block
  EXPECT_THAT(Refusal(plan), HasSubstr("no edge from node 0 to node 2"));
  plan.fusion_blocks[0].inner = {{0, 1, ResultOf(1)}};
  EXPECT_THAT(Refusal(plan), HasSubstr("no edge from node 0 to node 1 with value"));
}

TEST_F(CheckPlanTest, RecomputedNodes) {
  // Exp reads what its own fusion block recomputes, and nobody outside Add's reads what Relu stores there.
  FusionPlan plan = Plan({{1}, {0, 2}});
  plan.fusion_blocks[0].recomputed = {0};
  EXPECT_TRUE(CheckPlan(graph_, plan).ok()) << CheckPlan(graph_, plan);
  plan.fusion_blocks[1].unread = {ResultOf(0)};
  EXPECT_TRUE(CheckPlan(graph_, plan).ok()) << CheckPlan(graph_, plan);
  EXPECT_TRUE(LiveOut(graph_, plan.fusion_blocks[0]) == std::vector<ecg::ValueId>{ResultOf(1)});
  EXPECT_TRUE(LiveOut(graph_, plan.fusion_blocks[1]) == std::vector<ecg::ValueId>{ResultOf(2)});

  plan = Plan({{0}, {1, 2}});
  plan.fusion_blocks[0].unread = {ResultOf(0)};
  EXPECT_THAT(Refusal(plan), HasSubstr("reads what Relu"));
  plan = Plan({{0}, {1, 2}});
  plan.fusion_blocks[1].recomputed = {2};
  EXPECT_THAT(Refusal(plan), HasSubstr("recomputes node 2"));
  plan.fusion_blocks[1].recomputed = {7};
  EXPECT_THAT(Refusal(plan), HasSubstr("recomputes node 7"));
  // The operands of a recomputed node have to exist, too.
  plan = Plan({{2}, {0}, {1}});
  plan.fusion_blocks[0].recomputed = {1};
  EXPECT_THAT(Refusal(plan), HasSubstr("runs before Relu"));
}

TEST_F(CheckPlanTest, LiveOutIsWhatOthersRead) {
  EXPECT_EQ(LiveOut(graph_, {{0, 1}}),
            (std::vector<ecg::ValueId>{graph_.node(0).outputs[0], graph_.node(1).outputs[0]}));
  EXPECT_EQ(LiveOut(graph_, {{0, 1, 2}}), (std::vector<ecg::ValueId>{graph_.node(2).outputs[0]}));
}

TEST(Planners, AreListedAndFound) {
  EXPECT_THAT(PlannerNames(), testing::IsSupersetOf({"none", "dnnfusion"}));
  for (const std::string& name : PlannerNames()) {
    ASSERT_NE(FindPlanner(name), nullptr) << name;
    EXPECT_EQ(FindPlanner(name)->name(), name) << "two planners of one name";
  }
  EXPECT_EQ(FindPlanner("nothing"), nullptr);
}

}  // namespace
}  // namespace fusion
