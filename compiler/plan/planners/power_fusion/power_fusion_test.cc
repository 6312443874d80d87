#include "compiler/plan/planners/power_fusion/power_fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/cost/typical_core.h"
#include "compiler/plan/planners/tvm_like/tvm_like.h"
#include "compiler/plan/testing/accepting_oracle.h"
#include "compiler/simplify/passes.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ecg::Graph Opened(const std::string& text) {
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return simplify::OpenComposites(graph.value());
}

FusionPlan PlanOf(const ecg::Graph& graph, AcceptingOracle* oracle) {
  auto plan = PowerFusionPlanner()->Plan(graph, TypicalCore(), *oracle, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(CheckPlan(graph, plan.value()).ok()) << CheckPlan(graph, *plan);
  return std::move(plan).value();
}

double SumNs(const ecg::Graph& graph, const FusionPlan& plan, AcceptingOracle* oracle) {
  double ns = 0;
  for (const FusionBlock& fusion_block : plan.fusion_blocks) ns += oracle->Fit(graph, fusion_block)->estimate_ns;
  return ns;
}

// Figure 7: the depthwise convolution is bound by memory and joins the activation in front of it.
TEST(PowerFusion, DepthwiseConvolutionsJoinTheirMemoryBoundNeighbours) {
  const ecg::Graph graph = Opened(R"(graph g(%x: f32[1, 192, 14, 14]) {
    %a: f32[1152, 192, 1, 1] = const #0000000000000001
    %d: f32[1152, 1, 3, 3] = const #0000000000000002
    %b: f32[192, 1152, 1, 1] = const #0000000000000003
    %expanded: f32[1, 1152, 14, 14] = Conv(%x, %a)
    %relu: f32[1, 1152, 14, 14] = Relu(%expanded)
    %deep: f32[1, 1152, 14, 14] = Conv(%relu, %d) {group = 1152, pads = ints[1, 1, 1, 1]}
    %act: f32[1, 1152, 14, 14] = Relu(%deep)
    %projected: f32[1, 192, 14, 14] = Conv(%act, %b)
    return %projected
  })");
  AcceptingOracle oracle;
  // A schedule for the depthwise convolution in a product's kernel is what a CPU seldom has.
  oracle.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) { return fusion_block.nodes.size() > 3; };
  const FusionPlan plan = PlanOf(graph, &oracle);
  bool joined = false;
  for (const FusionBlock& fusion_block : plan.fusion_blocks) {
    const std::string names = NamesOf(graph, fusion_block.nodes);
    joined |= names.find("deep") != std::string::npos && fusion_block.nodes.size() > 1;
  }
  EXPECT_TRUE(joined) << PrintPlan(graph, plan);
}

TEST(PowerFusion, IsNeverEstimatedSlowerThanFixedPatterns) {
  // Kernels of three operators are absurdly slow, so that merging one by one stops at pairs. Four are fast.
  class Strange : public AcceptingOracle {
   public:
    absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
      absl::StatusOr<FusionBlockAccount> account = AcceptingOracle::Fit(graph, fusion_block);
      if (account.ok() && fusion_block.nodes.size() == 2) account->estimate_ns = 1e6;
      if (account.ok() && fusion_block.nodes.size() == 3) account->estimate_ns = 10;
      return account;
    }
  } oracle;
  const ecg::Graph graph = Opened(R"(graph g(%x: f32[64, 64]) {
    %a: f32[64, 64] = Exp(%x)
    %b: f32[64, 64] = Neg(%a)
    %c: f32[64, 64] = Abs(%b)
    return %c
  })");
  const FusionPlan plan = PlanOf(graph, &oracle);
  EXPECT_THAT(FusionBlockNames(graph, plan), ElementsAre("a+b+c"));
  for (const Decision& decision : plan.decisions) EXPECT_THAT(decision.reason, HasSubstr("fixed patterns"));
  auto patterns = TvmLikePlanner()->Plan(graph, TypicalCore(), oracle, {});
  ASSERT_TRUE(patterns.ok()) << patterns.status();
  EXPECT_LE(SumNs(graph, plan, &oracle), SumNs(graph, *patterns, &oracle));
}

TEST(PowerFusion, ReasonsSayWhatMoves) {
  const ecg::Graph graph = Opened(R"(graph g(%x: f32[64, 64]) {
    %a: f32[64, 64] = Exp(%x)
    %t: f32[64, 64] = Transpose(%a) {perm = ints[1, 0]}
    return %t
  })");
  AcceptingOracle oracle;
  const FusionPlan plan = PlanOf(graph, &oracle);
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_TRUE(plan.decisions[0].fused);
  EXPECT_THAT(plan.decisions[0].reason, HasSubstr("moves 32768 bytes in 1 phases"));
}

}  // namespace
}  // namespace fusion
