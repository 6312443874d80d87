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
  // A plan of these fusion blocks, with their edges and the scopes that belong to them.
  FusionPlan Plan(const std::vector<std::vector<ecg::NodeId>>& blocks) {
    FusionPlan plan;
    std::vector<int> block_of(3, -1);
    for (const auto& nodes : blocks) {
      plan.blocks.push_back({nodes});
      for (ecg::NodeId id : nodes) {
        if (id >= 0 && id < 3) block_of[id] = static_cast<int>(plan.blocks.size());
      }
    }
    for (ecg::NodeId id = 1; id < 3; ++id) {
      for (ecg::ValueId v : graph_.node(id).inputs) {
        const ecg::NodeId producer = graph_.value(v).producer;
        plan.edges.push_back({producer, id, v, block_of[producer] == block_of[id] ? Scope::kLane : Scope::kKernel});
      }
    }
    return plan;
  }
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

TEST_F(CheckPlanTest, EveryNodeInOneBlock) {
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

TEST_F(CheckPlanTest, EdgesAndScopes) {
  FusionPlan plan = Plan({{0, 1}, {2}});
  plan.edges[0].scope = Scope::kKernel;
  EXPECT_THAT(Refusal(plan), HasSubstr("has scope kernel"));
  plan = Plan({{0, 1}, {2}});
  plan.edges[1].scope = Scope::kBlock;
  EXPECT_THAT(Refusal(plan), HasSubstr("has scope block"));
  plan = Plan({{0, 1}, {2}});
  plan.edges.pop_back();
  EXPECT_THAT(Refusal(plan), HasSubstr("no edge Exp"));
  plan = Plan({{0, 1}, {2}});
  plan.edges[0].consumer = 9;
  EXPECT_THAT(Refusal(plan), HasSubstr("the graph has no edge from node 0 to node 9"));
  plan = Plan({{0, 1}, {2}});
  plan.edges[0].producer = 2;
  EXPECT_THAT(Refusal(plan), HasSubstr("the graph has no edge from node 2"));
}

TEST_F(CheckPlanTest, LiveOutIsWhatOthersRead) {
  EXPECT_EQ(LiveOut(graph_, {{0, 1}}),
            (std::vector<ecg::ValueId>{graph_.node(0).outputs[0], graph_.node(1).outputs[0]}));
  EXPECT_EQ(LiveOut(graph_, {{0, 1, 2}}), (std::vector<ecg::ValueId>{graph_.node(2).outputs[0]}));
}

TEST(Planners, AreListedAndFound) {
  EXPECT_THAT(PlannerNames(), testing::ElementsAre("none", "dnnfusion", "dnnfusion-listing"));
  for (const std::string& name : PlannerNames()) EXPECT_EQ(FindPlanner(name)->name(), name);
  EXPECT_EQ(FindPlanner("nothing"), nullptr);
}

}  // namespace
}  // namespace fusion
