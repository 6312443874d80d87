#include "compiler/plan/planners/graph_turbo/graph_turbo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "compiler/plan/testing/accepting_oracle.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three images of 128 KiB, each made of the one in front.
constexpr char kImages[] = R"(graph g(%x: f32[1, 8, 64, 64]) {
  %w: f32[8, 8, 3, 3] = const #0000000000000001
  %a: f32[1, 8, 64, 64] = Conv(%x, %w) {pads = ints[1, 1, 1, 1]}
  %b: f32[1, 8, 64, 64] = Conv(%a, %w) {pads = ints[1, 1, 1, 1]}
  %c: f32[1, 8, 64, 64] = Conv(%b, %w) {pads = ints[1, 1, 1, 1]}
  return %c
})";

// Layers take 100 each; kernels of several, which only a directive allows, what the test says.
class ChainOracle : public FusionOracle {
 public:
  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph&, const FusionBlock& fusion_block) override {
    FusionBlockAccount account;
    account.estimate_ns = Estimate(fusion_block);
    if (fusion_block.nodes.size() > 1 && account.estimate_ns == 0) return absl::FailedPreconditionError("two phases");
    return account;
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph&, const std::vector<FusionComparison>& questions,
                                        const std::vector<FusionComparison>&) override {
    FusionAnswers answers;
    for (const FusionComparison& question : questions) {
      if (question.ways[0].size() == 1 && !question.ways[0][0].directives.empty()) ++asked;
      WayLatencies& ways = answers.asked.emplace_back();
      for (const std::vector<FusionBlock>& way : question.ways) {
        ways.push_back({0, source});
        for (const FusionBlock& fusion_block : way) {
          ways.back().latency_ns += measured ? measured(fusion_block) : Estimate(fusion_block);
        }
      }
    }
    return answers;
  }
  double EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) override {
    return 100 * static_cast<double>(nodes.size());
  }

  std::function<double(const FusionBlock&)> depth_first;  // estimate of a kernel with a directive; 0: it is refused
  std::function<double(const FusionBlock&)> measured;     // may be empty
  LatencySource source = LatencySource::kModel;
  int asked = 0;

 private:
  double Estimate(const FusionBlock& fusion_block) const {
    if (fusion_block.nodes.size() == 1) return 100;
    return fusion_block.directives.empty() ? 0 : depth_first(fusion_block);
  }
};

class GraphTurbo : public testing::Test {
 protected:
  GraphTurbo() : graph_(*ecg::Parse(kImages)) {
    device_.memory = {{"L2", 64 << 10, 1e10, false}, {"DRAM", 0, 1e9, true}};
  }
  FusionPlan Plan() {
    auto plan = GraphTurboPlanner()->Plan(graph_, device_, oracle_, options_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(CheckPlan(graph_, *plan).ok());
    return *std::move(plan);
  }

  const ecg::Graph graph_;
  DeviceModel device_;
  ChainOracle oracle_;
  PlanOptions options_;
};

TEST_F(GraphTurbo, TakesTheFormThatIsFaster) {
  oracle_.depth_first = [](const FusionBlock& block) {
    return (block.directives[0].alternative == "windows" ? 60.0 : 80.0) * static_cast<double>(block.nodes.size());
  };
  const FusionPlan plan = Plan();
  EXPECT_THAT(FusionBlockNames(graph_, plan), ElementsAre("a+b+c"));
  EXPECT_THAT(plan.fusion_blocks[0].directives, ElementsAre(Directive{ecg::kNone, "form", "windows"}));
  for (const Decision& decision : plan.decisions) {
    EXPECT_TRUE(decision.fused);
    EXPECT_THAT(decision.reason, HasSubstr("depth first (windows)"));
    EXPECT_EQ(decision.fused_ns, 180);
    EXPECT_EQ(decision.separate_ns, 300);
  }
}

// The pair b, c saves more than a, b; all three together are refused.
TEST_F(GraphTurbo, CutsAChainWhereThatCostsLeast) {
  oracle_.depth_first = [](const FusionBlock& block) {
    if (block.nodes.size() == 3) return 0.0;
    return block.nodes[0] == 0 ? 170.0 : 150.0;
  };
  EXPECT_THAT(FusionBlockNames(graph_, Plan()), ElementsAre("a", "b+c"));
}

TEST_F(GraphTurbo, EstimatesHaveToPromiseMoreThanTheirError) {
  oracle_.depth_first = [](const FusionBlock& block) { return 95 * static_cast<double>(block.nodes.size()); };
  const FusionPlan plan = Plan();
  EXPECT_THAT(FusionBlockNames(graph_, plan), ElementsAre("a", "b", "c"));
  for (const Decision& decision : plan.decisions) EXPECT_THAT(decision.reason, HasSubstr("by the error of estimates"));
}

TEST_F(GraphTurbo, AMeasurementDecides) {
  oracle_.depth_first = [](const FusionBlock& block) { return 95 * static_cast<double>(block.nodes.size()); };
  oracle_.source = LatencySource::kMeasured;
  // Measured, layers take half as long as estimated, three of them together 0.9 of that, and a pair twice as long.
  oracle_.measured = [](const FusionBlock& block) {
    return block.nodes.size() == 1 ? 50.0 : block.nodes.size() == 3 ? 135.0 : 200.0;
  };
  EXPECT_THAT(FusionBlockNames(graph_, Plan()), ElementsAre("a+b+c"));
  EXPECT_GT(oracle_.asked, 0);
  oracle_.measured = [](const FusionBlock& block) { return block.nodes.size() == 1 ? 50.0 : 200.0; };
  const FusionPlan apart = Plan();
  EXPECT_THAT(FusionBlockNames(graph_, apart), ElementsAre("a", "b", "c"));
  for (const Decision& decision : apart.decisions) {
    EXPECT_FALSE(decision.fused);
    EXPECT_THAT(decision.reason, HasSubstr("us against 0."));
    EXPECT_THAT(decision.reason, HasSubstr("(measured)"));
  }
}

TEST_F(GraphTurbo, AKernelThatFailsIsLeftOut) {
  oracle_.depth_first = [](const FusionBlock& block) { return 10 * static_cast<double>(block.nodes.size()); };
  oracle_.source = LatencySource::kFailed;
  EXPECT_THAT(FusionBlockNames(graph_, Plan()), ElementsAre("a", "b", "c"));
}

TEST_F(GraphTurbo, IsDnnFusionWhereEverythingStaysNear) {
  oracle_.depth_first = [](const FusionBlock&) { return 1.0; };
  device_.memory[0].size_bytes = 1 << 20;
  EXPECT_THAT(FusionBlockNames(graph_, Plan()), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace fusion
