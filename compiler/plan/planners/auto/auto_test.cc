#include "compiler/plan/planners/auto/auto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/plan/testing/accepting_oracle.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// A product, arithmetic, and a reduction.
ecg::Graph Graph() {
  auto graph = ecg::Parse(R"(graph g(%x: f32[64, 64]) {
    %w: f32[64, 64] = const #0000000000000001
    %p: f32[64, 64] = MatMul(%x, %w)
    %a: f32[64, 64] = Relu(%p)
    %b: f32[64, 64] = Exp(%a)
    %c: f32[64, 64] = Add(%b, %p)
    %s: f32[64, 64] = Softmax(%c) {axis = -1}
    return %s
  })");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

// A fusion block costs its nodes and `each`, which is negative where fusing does not pay.
class FakeOracle : public FusionOracle {
 public:
  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
    FusionBlockAccount account;
    account.estimate_ns = EstimateNs(graph, fusion_block.nodes);
    return account;
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionComparison>& questions,
                                        const std::vector<FusionComparison>& maybe) override {
    ++comparisons;
    FusionAnswers answers;
    for (const FusionComparison& question : questions) {
      WayLatencies& ways = answers.asked.emplace_back();
      for (const auto& fusion_blocks : question.ways) {
        ways.push_back({0, source});
        // Measurements keep everything apart.
        for (const FusionBlock& fusion_block : fusion_blocks) {
          if (measured_with_directive > 0 && !fusion_block.directives.empty()) {
            ways.back().latency_ns += measured_with_directive;
            continue;
          }
          ways.back().latency_ns +=
              IsMeasured(source) ? 100 * static_cast<double>(fusion_block.nodes.size() * fusion_block.nodes.size())
                                 : EstimateNs(graph, fusion_block.nodes);
        }
      }
    }
    answers.maybe.resize(maybe.size());
    return answers;
  }
  double EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) override {
    return each + 1000 * static_cast<double>(nodes.size()) + (nodes.size() > 1 ? fused_more : 0);
  }

  double each = 500, fused_more = 0;
  double measured_with_directive = 0;  // of a kernel with directives; 0: as of every other one
  LatencySource source = LatencySource::kModel;
  int comparisons = 0;
};

FusionPlan Plan(FakeOracle& oracle, std::vector<std::string>* parts = nullptr) {
  PlanOptions options;
  if (parts != nullptr) options.begin = [&](const std::string& part) { parts->push_back(part); };
  const ecg::Graph graph = Graph();
  auto plan = AutoPlanner()->Plan(graph, DeviceModel(), oracle, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  const absl::Status valid = CheckPlan(graph, plan.value());
  EXPECT_TRUE(valid.ok()) << valid;
  return *std::move(plan);
}

const OfferedPlan* Find(const FusionPlan& plan, const std::string& name, bool measured = false) {
  for (const OfferedPlan& offer : plan.offers) {
    if (offer.name == name && offer.measured == measured) return &offer;
  }
  return nullptr;
}

TEST(Auto, OffersEveryPlannersPlanAndTakesTheBest) {
  FakeOracle oracle;
  const FusionPlan plan = Plan(oracle);
  for (const std::string& name : PlannerNames()) {
    if (name == "auto") continue;
    const OfferedPlan* offer = Find(plan, name);
    ASSERT_NE(offer, nullptr) << name;
    EXPECT_FALSE(offer->plan.fusion_blocks.empty()) << name << ": " << offer->reason;
    EXPECT_GE(offer->estimate.ns, plan.offers[0].estimate.ns) << name;
  }
  EXPECT_EQ(plan.fusion_blocks, plan.offers[0].plan.fusion_blocks);
  EXPECT_THAT(plan.offers[0].reason, HasSubstr("estimated the fastest as a whole"));
  EXPECT_EQ(Find(plan, kPreferredPlanner, /*measured=*/true), nullptr) << "nothing was measured";
}

TEST(Auto, BehindManyQuestionsNoOtherPlannerIsAsked) {
  std::string text = "graph g(%x: f32[64, 64]) {\n", last = "%x";
  for (int n = 0; n < 12000; ++n) {
    absl::StrAppend(&text, "  %v", n, ": f32[64, 64] = ", n % 3 == 0 ? "Softmax" : "Exp", "(", last, ")\n");
    last = absl::StrCat("%v", n);
  }
  const auto graph = ecg::Parse(absl::StrCat(text, "  return ", last, "\n}"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  AcceptingOracle oracle;
  const auto plan = AutoPlanner()->Plan(*graph, DeviceModel(), oracle, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  int asked = 0, left_out = 0;
  for (const OfferedPlan& offer : plan->offers) {
    asked += offer.plan.fusion_blocks.empty() ? 0 : 1;
    left_out += absl::StrContains(offer.reason, "not asked, since") ? 1 : 0;
  }
  EXPECT_GE(asked, 2) << "the preferred planner, and `none`";
  EXPECT_GE(left_out, 1);
  EXPECT_NE(Find(*plan, kPreferredPlanner), nullptr);
  EXPECT_FALSE(Find(*plan, "none")->plan.fusion_blocks.empty());
}

TEST(Auto, WhereFusingNeverPaysNothingIsFused) {
  FakeOracle oracle;
  oracle.each = 0;
  oracle.fused_more = 5000;
  const FusionPlan plan = Plan(oracle);
  EXPECT_EQ(plan.fusion_blocks.size(), 5u);
  EXPECT_EQ(plan.offers[0].estimate.ns, Find(plan, "none")->estimate.ns);
}

TEST(Auto, NoPlanIsTakenThatIsEstimatedSlowerThanNoneOrThePreferredPlanner) {
  for (const double fused_more : {-900.0, 0.0, 300.0, 499.0, 501.0, 700.0, 1200.0, 2500.0}) {
    FakeOracle oracle;
    oracle.fused_more = fused_more;
    const FusionPlan plan = Plan(oracle);
    const double taken = oracle.EstimatePlan(Graph(), plan.fusion_blocks)->ns;
    EXPECT_LE(taken, Find(plan, "none")->estimate.ns) << fused_more;
    EXPECT_LE(taken, Find(plan, kPreferredPlanner)->estimate.ns) << fused_more;
  }
}

TEST(Auto, TheSearchGoesBeyondThePlanners) {
  FakeOracle oracle;  // everything in one block is best, and Table 3 keeps products and softmax apart
  const FusionPlan plan = Plan(oracle);
  EXPECT_EQ(plan.fusion_blocks.size(), 1u);
}

// Whole plans of several kernels are estimated at `several`, the preferred planner's single kernel at 1000.
class CloseOracle : public FakeOracle {
 public:
  absl::StatusOr<PlanEstimate> EstimatePlan(const ecg::Graph&, const std::vector<FusionBlock>& fusion_blocks) override {
    PlanEstimate estimate;
    estimate.ns = fusion_blocks.size() == 1 ? 1000 : fusion_blocks.size() == 5 ? 2000 : several;
    return estimate;
  }
  double several = 0;
};

TEST(Auto, TooSmallADifferenceLeavesThePreferredPlannersPlan) {
  CloseOracle oracle;
  oracle.several = 960;
  const FusionPlan near = Plan(oracle);
  EXPECT_EQ(near.offers[0].name, kPreferredPlanner);
  EXPECT_EQ(near.fusion_blocks.size(), 1u);
  EXPECT_EQ(near.offers[1].estimate.ns, 960) << "the fastest is the next";
  EXPECT_THAT(near.offers[0].reason, HasSubstr("estimates cannot tell it from the plan of"));
  oracle.several = 900;
  const FusionPlan far = Plan(oracle);
  EXPECT_EQ(far.offers[0].estimate.ns, 900);
  EXPECT_GT(far.fusion_blocks.size(), 1u);
}

TEST(Auto, WhatRestsOnMeasurementsStaysUntilWholePlansAreMeasured) {
  FakeOracle oracle;
  oracle.source = LatencySource::kMeasured;
  const FusionPlan plan = Plan(oracle);
  EXPECT_GT(oracle.comparisons, 0);
  ASSERT_NE(Find(plan, kPreferredPlanner, /*measured=*/true), nullptr);
  EXPECT_TRUE(plan.offers[0].measured);
  EXPECT_NE(Find(plan, kPreferredPlanner), nullptr) << "its plan by estimates is offered, too";
  EXPECT_THAT(plan.offers[0].reason, HasSubstr("rests on measurements"));
}

// Where nothing leaves the core's cache, the chains of graph_turbo are the kernels of dnnfusion.
TEST(Auto, APlanByMeasurementsIsOfferedOnce) {
  FakeOracle oracle;
  oracle.source = LatencySource::kMeasured;
  const FusionPlan plan = Plan(oracle);
  EXPECT_TRUE(FindPlanner("graph_turbo")->OffersMeasured());
  EXPECT_EQ(Find(plan, "graph_turbo", /*measured=*/true), nullptr);
  EXPECT_NE(Find(plan, "graph_turbo"), nullptr);
}

// On a device whose cores keep little, graph_turbo asks about chains, which are measured faster here than apart.
TEST(Auto, ChainsByMeasurementsAreOfferedBesideKernelsByMeasurements) {
  FakeOracle oracle;
  oracle.source = LatencySource::kMeasured;
  oracle.measured_with_directive = 1;
  DeviceModel device;
  device.memory = {{"L2", 4096, 1e10, false}, {"DRAM", 0, 1e9, true}};
  const ecg::Graph graph = Graph();
  const auto plan = AutoPlanner()->Plan(graph, device, oracle, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const OfferedPlan* chains = Find(*plan, "graph_turbo", /*measured=*/true);
  ASSERT_NE(chains, nullptr);
  const OfferedPlan* kernels = Find(*plan, kPreferredPlanner, /*measured=*/true);
  ASSERT_NE(kernels, nullptr);
  EXPECT_LT(chains->plan.fusion_blocks.size(), kernels->plan.fusion_blocks.size());
  EXPECT_EQ(plan->offers[0].name, kPreferredPlanner) << "until whole plans are measured";
}

TEST(Auto, EachPartOfTheWorkIsAnnounced) {
  FakeOracle oracle;
  std::vector<std::string> parts;
  Plan(oracle, &parts);
  EXPECT_EQ(parts[0], kPreferredPlanner);
  EXPECT_EQ(parts.back(), kCombinedPlan);
  EXPECT_GE(parts.size(), PlannerNames().size());
}

TEST(Auto, EqualQuestionsGiveEqualPlans) {
  FakeOracle a, b;
  const FusionPlan first = Plan(a), second = Plan(b);
  EXPECT_EQ(first.fusion_blocks, second.fusion_blocks);
  ASSERT_EQ(first.offers.size(), second.offers.size());
  for (size_t o = 0; o < first.offers.size(); ++o) EXPECT_EQ(first.offers[o].name, second.offers[o].name);
}

// A user's mistake must not look like a fault of the compiler.
TEST(Auto, WhatNoPlannerCanPlanHasThePlannersReason) {
  class Refusing : public FakeOracle {
   public:
    absl::StatusOr<PlanEstimate> EstimatePlan(const ecg::Graph&, const std::vector<FusionBlock>&) override {
      return absl::UnimplementedError("nothing lowers MatMul");
    }
  } oracle;
  const absl::Status status = AutoPlanner()->Plan(Graph(), DeviceModel(), oracle, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing lowers MatMul"));
}

TEST(Auto, AGraphWithoutNodesHasAnEmptyPlan) {
  FakeOracle oracle;
  const auto graph = ecg::Parse("graph g(%x: f32[8]) {\n  return %x\n}");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto plan = AutoPlanner()->Plan(*graph, DeviceModel(), oracle, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->fusion_blocks.empty());
}

TEST(Auto, CancellingEndsIt) {
  FakeOracle oracle;
  PlanOptions options;
  options.cancelled = [] { return true; };
  EXPECT_EQ(AutoPlanner()->Plan(Graph(), DeviceModel(), oracle, options).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fusion
