#include "compiler/plan/planners/auto/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Chain of n operators: node i reads node i-1.
ecg::Graph Chain(int n) {
  std::string text = "graph g(%x: f32[8]) {\n";
  for (int i = 0; i < n; ++i) {
    absl::StrAppend(&text, "  %v", i, ": f32[8] = Relu(%", i == 0 ? "x" : absl::StrCat("v", i - 1), ")\n");
  }
  absl::StrAppend(&text, "  return %v", n - 1, "\n}");
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

// A fusion block costs 100 and 10 for each node, alone and in a plan, if nothing else is said.
class FakeOracle : public FusionOracle {
 public:
  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
    ++fits;
    const bool barrier = !fusion_block.inner.empty() && fusion_block.inner[0].nearest == Scope::kDevice;
    if (refused.count(fusion_block.nodes) > 0 && !(barrier && barriers_help))
      return absl::FailedPreconditionError("too large");
    FusionBlockAccount account;
    account.estimate_ns = EstimateNs(graph, fusion_block.nodes);
    return account;
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph&, const std::vector<FusionComparison>&,
                                        const std::vector<FusionComparison>&) override {
    return absl::InternalError("the search measures nothing");
  }
  double EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) override {
    const auto said = alone.find(nodes);
    return said != alone.end() ? said->second : 100 + 10 * static_cast<double>(nodes.size());
  }
  absl::StatusOr<PlanEstimate> EstimatePlan(const ecg::Graph& graph,
                                            const std::vector<FusionBlock>& fusion_blocks) override {
    ++plans;
    EXPECT_TRUE(CheckPlan(graph, {fusion_blocks, {}, {}}).ok());
    PlanEstimate estimate;
    for (const FusionBlock& fusion_block : fusion_blocks) {
      const auto said = in_plan.find(fusion_block.nodes);
      estimate.ns += said != in_plan.end() ? said->second : EstimateNs(graph, fusion_block.nodes);
    }
    return estimate;
  }

  using Nodes = std::vector<ecg::NodeId>;
  std::set<Nodes> refused;
  bool barriers_help = false;
  std::map<Nodes, double> alone, in_plan;
  int fits = 0, plans = 0;
};

FusionPlan PlanOf(std::vector<FusionBlock> fusion_blocks) { return {std::move(fusion_blocks), {}, {}}; }

class PlanSearchTest : public ::testing::Test {
 protected:
  FusionPlan Move(const ecg::Graph& graph, const FusionPlan& start, std::vector<KnownFusionBlock> known = {}) {
    PlanSearch search(graph, oracle_, options_, limits_, std::move(known));
    EXPECT_TRUE(search.Start(start).ok());
    const absl::Status moved = search.Move();
    EXPECT_TRUE(moved.ok()) << moved;
    changes_ = search.changes();
    FusionPlan plan = search.Plan();
    EXPECT_TRUE(CheckPlan(graph, plan).ok()) << CheckPlan(graph, plan);
    return plan;
  }
  FakeOracle oracle_;
  PlanOptions options_;
  SearchLimits limits_;
  int64_t changes_ = 0;
};

TEST_F(PlanSearchTest, NeighboursAreMergedWhileThePlanGetsFaster) {
  oracle_.refused = {{0, 1, 2, 3}, {0, 1, 2}, {1, 2, 3}};
  const FusionPlan plan = Move(Chain(4), PlanOf({{0}, {1}, {2}, {3}}));
  EXPECT_THAT(plan.fusion_blocks, ElementsAre(FusionBlock{0, 1}, FusionBlock{2, 3}));
  EXPECT_EQ(changes_, 2);
  ASSERT_EQ(plan.decisions.size(), 2u);
  EXPECT_TRUE(plan.decisions[0].fused);
  EXPECT_THAT(plan.decisions[0].reason, HasSubstr("merged: the whole plan is estimated 0.3 us instead of 0.4"));
}

TEST_F(PlanSearchTest, TheWholePlanDecidesAndNotTheFusionBlocksAlone) {
  oracle_.in_plan = {{{0, 1}, 300}};  // alone it looks faster than two
  EXPECT_THAT(Move(Chain(2), PlanOf({{0}, {1}})).fusion_blocks, ElementsAre(FusionBlock{0}, FusionBlock{1}));
  EXPECT_EQ(changes_, 0);
}

TEST_F(PlanSearchTest, WhatFitsInNoTaskIsTriedAcrossABarrier) {
  oracle_.refused = {{0, 1}};
  EXPECT_EQ(Move(Chain(2), PlanOf({{0}, {1}})).fusion_blocks.size(), 2u);
  oracle_.barriers_help = true;
  const FusionPlan plan = Move(Chain(2), PlanOf({{0}, {1}}));
  ASSERT_EQ(plan.fusion_blocks.size(), 1u);
  ASSERT_EQ(plan.fusion_blocks[0].inner.size(), 1u);
  EXPECT_EQ(plan.fusion_blocks[0].inner[0].nearest, Scope::kDevice);
}

TEST_F(PlanSearchTest, AFusionBlockThatIsTooSlowIsSplit) {
  oracle_.in_plan = {{{0, 1, 2, 3}, 900}, {{0, 1, 2}, 600}, {{1, 2, 3}, 600}};
  oracle_.alone = {{{0, 1, 2, 3}, 300}, {{0, 1, 2}, 180}, {{1, 2, 3}, 180}};
  const FusionPlan plan = Move(Chain(4), PlanOf({{0, 1, 2, 3}}));
  EXPECT_THAT(plan.fusion_blocks, ElementsAre(FusionBlock{0, 1}, FusionBlock{2, 3}));
}

// Neither a merge nor a split leads from {0, 1}, {2, 3} to {0}, {1, 2, 3} alone; the choice among known fusion blocks
// does.
TEST_F(PlanSearchTest, TwoNeighboursAreDividedAnewByWhatPlannersHaveAskedAbout) {
  oracle_.refused = {{0, 1, 2, 3}};
  oracle_.alone = {{{1, 2, 3}, 30}, {{0}, 40}};
  oracle_.in_plan = oracle_.alone;
  const FusionPlan plan = Move(Chain(4), PlanOf({{0, 1}, {2, 3}}), {{{1, 2, 3}, 30}, {{0, 1, 2}, 130}});
  EXPECT_THAT(plan.fusion_blocks, ElementsAre(FusionBlock{0}, FusionBlock{1, 2, 3}));
}

// 0 -> 1 -> 2 and 0 -> 2: without 1, 0 and 2 would wait for each other.
TEST_F(PlanSearchTest, NothingIsMergedThatWouldWaitForItself) {
  auto graph = ecg::Parse(R"(graph g(%x: f32[8]) {
    %a: f32[8] = Relu(%x)
    %b: f32[8] = Exp(%a)
    %c: f32[8] = Add(%a, %b)
    return %c
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  oracle_.refused = {{0, 1}, {1, 2}, {0, 1, 2}};
  EXPECT_EQ(Move(*graph, PlanOf({{0}, {1}, {2}})).fusion_blocks.size(), 3u);
}

TEST_F(PlanSearchTest, FusionBlocksThatRecomputeStayAsTheyAre) {
  FusionBlock last = {1};
  last.recomputed = {0};
  FusionPlan start = PlanOf({{0}, last, {2}});
  start.fusion_blocks[0].unread = {Chain(3).node(0).outputs[0]};
  oracle_.refused = {{1, 2}};
  const FusionPlan plan = Move(Chain(3), start);
  EXPECT_THAT(plan.fusion_blocks, ElementsAre(start.fusion_blocks[0], last, FusionBlock{2}));
}

TEST_F(PlanSearchTest, LimitsEndTheSearch) {
  limits_.plans = 3;
  Move(Chain(40), PlanOf([] {
         std::vector<FusionBlock> fusion_blocks;
         for (int i = 0; i < 40; ++i) fusion_blocks.push_back({i});
         return fusion_blocks;
       }()));
  EXPECT_EQ(oracle_.plans, 4) << "the one at the start, and three";
  limits_ = SearchLimits();
  limits_.operators = 2;
  EXPECT_EQ(Move(Chain(6), PlanOf({{0}, {1}, {2}, {3}, {4}, {5}})).fusion_blocks.size(), 3u);
}

// A change that did not help once is not tried on the whole plan again where everything looks the same.
TEST_F(PlanSearchTest, RepetitionsOfWhatWasInVainCostNothing) {
  std::vector<FusionBlock> fusion_blocks;
  for (int i = 0; i < 40; ++i) {
    fusion_blocks.push_back({i});
    if (i > 0) oracle_.in_plan[{i - 1, i}] = 500;
  }
  Move(Chain(40), PlanOf(fusion_blocks));
  EXPECT_LT(oracle_.plans, 6);
}

TEST_F(PlanSearchTest, CancellingEndsIt) {
  const ecg::Graph graph = Chain(8);
  PlanSearch search(graph, oracle_, options_, limits_, {});
  ASSERT_TRUE(search.Start(PlanOf({{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}})).ok());
  options_.cancelled = [] { return true; };
  EXPECT_EQ(search.Move().code(), absl::StatusCode::kCancelled);
}

class CombineTest : public PlanSearchTest {
 protected:
  FusionPlan Combine(const ecg::Graph& graph, const FusionPlan& start, const std::vector<const FusionPlan*>& others) {
    PlanSearch search(graph, oracle_, options_, limits_, {});
    EXPECT_TRUE(search.Start(start).ok());
    EXPECT_TRUE(search.Combine(others).ok());
    return search.Plan();
  }
};

// One planner is better in the first half, the other in the second.
TEST_F(CombineTest, TakesFromEachPlannerWhereItIsBetter) {
  const ecg::Graph graph = Chain(8);
  oracle_.alone = {{{4, 5, 6, 7}, 241}, {{0, 1, 2, 3}, 240}};  // the halves do not look alike
  oracle_.in_plan = {{{0, 1}, 50}, {{2, 3}, 50}, {{0, 1, 2, 3}, 500}, {{4, 5, 6, 7}, 50}, {{4, 5}, 90}, {{6, 7}, 90}};
  const FusionPlan first = PlanOf({{0, 1}, {2, 3}, {4, 5}, {6, 7}}), second = PlanOf({{0, 1, 2, 3}, {4, 5, 6, 7}});
  const FusionPlan plan = Combine(graph, first, {&second});
  EXPECT_THAT(plan.fusion_blocks, ElementsAre(FusionBlock{0, 1}, FusionBlock{2, 3}, FusionBlock{4, 5, 6, 7}));
  EXPECT_THAT(Combine(graph, second, {&first}).fusion_blocks, plan.fusion_blocks);
}

// The best division is in neither plan as a whole, only fusion block by fusion block.
TEST_F(CombineTest, TheExactChoiceMixesFusionBlocksOfOneRegion) {
  oracle_.alone = {{{0}, 100}, {{1, 2, 3}, 10}, {{0, 1}, 10},  {{2}, 10},
                   {{3}, 10},  {{1}, 100},      {{2, 3}, 100}, {{0, 1, 2}, 200}};
  oracle_.in_plan = oracle_.alone;
  const FusionPlan a = PlanOf({{0}, {1, 2, 3}}), b = PlanOf({{0, 1}, {2, 3}}), c = PlanOf({{0, 1, 2}, {3}}),
                   d = PlanOf({{0}, {1}, {2}, {3}});
  const FusionPlan plan = Combine(Chain(4), b, {&a, &c, &d});
  EXPECT_THAT(plan.fusion_blocks, ElementsAre(FusionBlock{0, 1}, FusionBlock{2}, FusionBlock{3}));
}

}  // namespace
}  // namespace fusion
