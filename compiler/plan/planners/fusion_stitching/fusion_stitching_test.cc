#include "compiler/plan/planners/fusion_stitching/fusion_stitching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/plan/planners/fusion_stitching/beam_search.h"
#include "compiler/plan/planners/fusion_stitching/delta_evaluator.h"
#include "compiler/plan/planners/fusion_stitching/kernel_graph.h"
#include "compiler/plan/planners/fusion_stitching/pattern_reduction.h"
#include "compiler/plan/planners/xla_like/xla_like.h"
#include "compiler/plan/testing/accepting_oracle.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

DeviceModel Device() {
  DeviceModel device;
  device.memory = {{"L1", 32 << 10, 1e11, false}, {"L2", 1 << 20, 5e10, false}, {"DRAM", 0, 1e10, true}};
  return device;
}

class FusionStitchingTest : public testing::Test {
 protected:
  void Read(const std::string& text) {
    auto graph = ecg::Parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
  }
  std::vector<std::string> Blocks(const std::string& text) {
    Read(text);
    auto plan = FusionStitchingPlanner()->Plan(graph_, device_, oracle_, options_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    plan_ = std::move(plan).value();
    EXPECT_TRUE(CheckPlan(graph_, plan_).ok()) << CheckPlan(graph_, plan_);
    return FusionBlockNames(graph_, plan_);
  }
  // The graph of XLA's kernels.
  KernelGraph Kernels(const std::string& text) {
    Read(text);
    const std::vector<OperatorTraits> traits = TraitsOf(graph_);
    auto xla = FuseLikeXla(graph_, traits, oracle_, options_);
    EXPECT_TRUE(xla.ok()) << xla.status();
    auto kernels = KernelGraph::Make(graph_, traits, xla.value(), oracle_, options_);
    EXPECT_TRUE(kernels.ok()) << kernels.status();
    return std::move(kernels).value();
  }
  // One expensive operator for each name, so that each is a vertex: "b c < a" reads a.
  static std::string Vertices(int rows, const std::vector<std::pair<std::string, std::vector<std::string>>>& reads,
                              const std::string& returned) {
    const std::string type = absl::StrCat("f32[", rows, ", 256]");
    std::string text = absl::StrCat("graph g(%x: ", type, ") {\n");
    for (const auto& [name, operands] : reads) {
      std::string sum = operands.empty() ? "%x" : "%" + operands[0];
      for (size_t i = 1; i < operands.size(); ++i) {
        const std::string partial = absl::StrCat(name, "_", i);
        absl::StrAppend(&text, "  %", partial, ": ", type, " = Add(", sum, ", %", operands[i], ")\n");
        sum = "%" + partial;
      }
      absl::StrAppend(&text, "  %", name, ": ", type, " = Exp(", sum, ")\n");
    }
    return absl::StrCat(text, "  return ", returned, "\n}");
  }
  AcceptingOracle oracle_;
  DeviceModel device_ = Device();
  PlanOptions options_;
  ecg::Graph graph_;
  FusionPlan plan_;
};

const char kLayerNorm[] = R"(graph g(%x: f32[64, 256], %g: f32[256], %b: f32[256]) {
  %axis: i64[1] = const {1}
  %eps: f32[1] = const {0.00001}
  %mean: f32[64, 1] = ReduceMean(%x, %axis)
  %d: f32[64, 256] = Sub(%x, %mean)
  %sq: f32[64, 256] = Mul(%d, %d)
  %var: f32[64, 1] = ReduceMean(%sq, %axis)
  %e: f32[64, 1] = Add(%var, %eps)
  %s: f32[64, 1] = Sqrt(%e)
  %n: f32[64, 256] = Div(%d, %s)
  %m: f32[64, 256] = Mul(%n, %g)
  %y: f32[64, 256] = Add(%m, %b)
  return %y
})";

TEST_F(FusionStitchingTest, LayerNormOfFigure1IsOneKernel) {
  EXPECT_THAT(Blocks(kLayerNorm), ElementsAre("mean+d+sq+var+e+s+n+m+y"));
  for (const Decision& decision : plan_.decisions) EXPECT_TRUE(decision.fused) << decision.reason;
}

TEST_F(FusionStitchingTest, ProductsAreNeverStitched) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[64, 256], %w: f32[256, 256]) {
    %a: f32[64, 256] = Exp(%x)
    %b: f32[64, 256] = Exp(%a)
    %p: f32[64, 256] = MatMul(%b, %w)
    %c: f32[64, 256] = Exp(%p)
    %d: f32[64, 256] = Exp(%c)
    return %d
  })"),
              ElementsAre("a+b", "p", "c+d"));
}

TEST_F(FusionStitchingTest, NoCyclesThroughAProduct) {
  // Figure 6: %a and %c together would need %p between them.
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[64, 64], %w: f32[64, 64]) {
    %a: f32[64, 64] = Exp(%x)
    %p: f32[64, 64] = MatMul(%a, %w)
    %c: f32[64, 64] = Add(%a, %p)
    %d: f32[64, 64] = Exp(%c)
    return %d
  })"),
              ElementsAre("a", "p", "c+d"));
}

TEST_F(FusionStitchingTest, RemoteFusionPacksKernelsThatNothingJoins) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[64, 64], %y: f32[64, 64], %z: f32[8, 8]) {
    %a: f32[64, 64] = Exp(%x)
    %b: f32[64, 64] = Exp(%y)
    %c: f32[8, 8] = Exp(%z)
    return %a, %b, %c
  })"),
              // %c has another parallelism.
              UnorderedElementsAre("a+b", "c"));
}

TEST_F(FusionStitchingTest, ExpensiveMapsAreTriedAsSubRoots) {
  // A kernel that keeps %a is faster by half here.
  oracle_.refuse = nullptr;
  class Keeping : public AcceptingOracle {
   public:
    absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
      absl::StatusOr<FusionBlockAccount> account = AcceptingOracle::Fit(graph, fusion_block);
      const bool kept = std::any_of(fusion_block.inner.begin(), fusion_block.inner.end(),
                                    [](const HandOver& edge) { return edge.nearest == Scope::kBlock; });
      if (account.ok() && kept) account->estimate_ns /= 2;
      return account;
    }
  } keeping;
  Read("graph g(%x: f32[64, 256]) {\n %a: f32[64, 256] = Exp(%x)\n %b: f32[64, 256] = Exp(%a)\n return %b\n}");
  auto plan = FusionStitchingPlanner()->Plan(graph_, device_, keeping, options_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->fusion_blocks.size(), 1u);
  ASSERT_EQ(plan->fusion_blocks[0].inner.size(), 1u);
  EXPECT_EQ(plan->fusion_blocks[0].inner[0].nearest, Scope::kBlock);
}

TEST_F(FusionStitchingTest, WhatCannotBeOneKernelIsCutWhereLeastIsLost) {
  // Only pairs of the chain a, b, c, d fit.
  oracle_.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) { return fusion_block.nodes.size() > 2; };
  EXPECT_THAT(Blocks(Vertices(64, {{"a", {}}, {"b", {"a"}}, {"c", {"b"}}, {"d", {"c"}}}, "%d")),
              ElementsAre("a+b", "c+d"));
  bool refused = false;
  for (const Decision& decision : plan_.decisions) {
    if (decision.fused) continue;
    EXPECT_THAT(decision.reason, HasSubstr("the test refuses it"));
    refused = true;
  }
  EXPECT_TRUE(refused);
}

// A schedule may refuse what would leave units idle unless every hand-over is named.
TEST_F(FusionStitchingTest, HandOversAreNamedWhereTheScheduleRefuses) {
  oracle_.refuse = [](const ecg::Graph& graph, const FusionBlock& fusion_block) {
    return fusion_block.inner.size() < InnerHandOvers(graph, fusion_block).size();
  };
  EXPECT_THAT(Blocks(Vertices(64, {{"a", {}}, {"b", {"a"}}, {"c", {"b"}}}, "%c")), ElementsAre("a+b+c"));
  ASSERT_EQ(plan_.fusion_blocks[0].inner.size(), 2u);
  for (const HandOver& hand_over : plan_.fusion_blocks[0].inner) EXPECT_EQ(hand_over.furthest, Scope::kBlock);
}

// Where launches are work-groups, kernels of unlike parallelism may be ranges of one launch.
TEST_F(FusionStitchingTest, UnlikeKernelsAreRangesOfALaunchOfWorkGroups) {
  const std::string text = R"(graph g(%x: f32[64, 64], %z: f32[8, 8]) {
    %a: f32[64, 64] = Exp(%x)
    %c: f32[8, 8] = Exp(%z)
    return %a, %c
  })";
  oracle_.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) {
    return fusion_block.nodes.size() > 1 && fusion_block.directives.empty();
  };
  EXPECT_THAT(Blocks(text), UnorderedElementsAre("a", "c")) << "on a processor";
  device_.kind = "cuda";
  device_.launch_s = 4e-6;
  EXPECT_THAT(Blocks(text), ElementsAre("a+c"));
  ASSERT_EQ(plan_.fusion_blocks[0].directives.size(), 1u);
  EXPECT_EQ(plan_.fusion_blocks[0].directives[0].alternative, "beside");
  // Connected kernels have no such form.
  oracle_.fits.clear();
  EXPECT_THAT(Blocks(Vertices(64, {{"a", {}}, {"b", {"a"}}}, "%b")), ElementsAre("a", "b"));
  for (const FusionBlock& fusion_block : oracle_.fits) EXPECT_TRUE(fusion_block.directives.empty());
}

// Two kernels compute %a: the second one as a node that the first one owns, which may have another schedule, or none.
TEST_F(FusionStitchingTest, KernelsFitBesideEachOther) {
  const std::string text = R"(graph g(%x: f32[64, 64], %w: f32[64, 64]) {
    %a: f32[64, 64] = Neg(%x)
    %b: f32[64, 64] = Exp(%a)
    %c: f32[64, 64] = Exp(%b)
    %p: f32[64, 64] = MatMul(%c, %w)
    %d: f32[64, 64] = Add(%a, %p)
    %e: f32[64, 64] = Exp(%d)
    %f: f32[64, 64] = Exp(%e)
    return %f
  })";
  EXPECT_THAT(Blocks(text), ElementsAre("a+b+c", "p", "d+e+f, again a"));
  ASSERT_EQ(plan_.fusion_blocks[2].recomputed.size(), 1u);
  // Another grouping serves: every hand-over named.
  oracle_.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) {
    return !fusion_block.recomputed.empty() && fusion_block.nodes.size() > 2 && fusion_block.inner.empty();
  };
  EXPECT_THAT(Blocks(text), ElementsAre("a+b+c", "p", "d+e+f, again a"));
  EXPECT_FALSE(plan_.fusion_blocks[2].inner.empty());
  // No grouping does: the kernels of xla_like stay.
  oracle_.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) {
    return !fusion_block.recomputed.empty() && fusion_block.nodes.size() > 2;
  };
  EXPECT_THAT(Blocks(text), ElementsAre("a+b+c", "p", "d+e, again a", "f"));
}

TEST_F(FusionStitchingTest, WhatIsMeasuredSlowerStaysApart) {
  oracle_.source = LatencySource::kMeasured;
  oracle_.latency = [](const ecg::Graph&, const FusionBlock& fusion_block) {
    return fusion_block.nodes.size() > 1 ? 9000.0 : 1000.0;
  };
  const std::string chain = Vertices(64, {{"a", {}}, {"b", {"a"}}}, "%b");
  EXPECT_THAT(Blocks(chain), ElementsAre("a", "b"));
  EXPECT_THAT(plan_.decisions[0].reason, HasSubstr("measured 9.0 us fused against 2.0 us apart"));
  oracle_.latency = [](const ecg::Graph&, const FusionBlock&) { return 1000.0; };
  EXPECT_THAT(Blocks(chain), ElementsAre("a+b"));
  // Nothing is asked about what takes no time.
  oracle_.compared = 0;
  options_.negligible_ns = 1e9;
  Blocks(chain);
  EXPECT_EQ(oracle_.compared, 0);
}

TEST_F(FusionStitchingTest, OnlyFinalCandidatesAreScheduled) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reads = {{"a0", {}}};
  for (int i = 1; i < 200; ++i) reads.push_back({absl::StrCat("a", i), {absl::StrCat("a", i - 1)}});
  const KernelGraph kernels = Kernels(Vertices(64, reads, "%a199"));
  const DeltaEvaluator evaluator(kernels, device_);
  ASSERT_TRUE(CandidatePatterns(kernels, evaluator, {}).ok());
  EXPECT_GT(evaluator.evaluations(), 1000);
  oracle_.fits.clear();
  Blocks(Vertices(64, reads, "%a199"));
  // Each vertex, and a few kernels of up to 64 operators in their groupings.
  EXPECT_LT(oracle_.fits.size(), 200u + 60u);
}

// --- The parts.

TEST_F(FusionStitchingTest, PatternReductionOfFigure4) {
  // V8 has consumers V5, V6 and V7.
  const KernelGraph kernels = Kernels(
      Vertices(64, {{"v8", {}}, {"v7", {"v8"}}, {"v6", {"v8"}}, {"v5", {"v8"}}, {"v0", {"v5", "v6", "v7"}}}, "%v0"));
  ASSERT_EQ(kernels.size(), 5);
  const DeltaEvaluator evaluator(kernels, device_);
  const auto candidates = CandidatePatterns(kernels, evaluator, {});
  ASSERT_TRUE(candidates.ok());
  // Everything together saves most; V8 with one consumer and V0 would be left and entered again, so that the others
  // join.
  ASSERT_FALSE((*candidates)[0].empty());
  EXPECT_EQ((*candidates)[0][0].vertices, (Pattern{0, 1, 2, 3, 4}));
  for (const auto& patterns : *candidates) {
    for (const ScoredPattern& pattern : patterns) {
      EXPECT_TRUE(kernels.IsConvex(pattern.vertices));
      EXPECT_GT(pattern.score, 0);
      EXPECT_EQ(pattern.score, evaluator.Evaluate(pattern.vertices)->Score());
    }
  }
}

TEST_F(FusionStitchingTest, ManyConsumersAreHalvedAndAllJoin) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reads = {{"a", {}}};
  std::vector<std::string> all;
  for (int i = 0; i < 12; ++i) reads.push_back({all.emplace_back(absl::StrCat("b", i)), {"a"}});
  reads.push_back({"c", all});
  const KernelGraph kernels = Kernels(Vertices(64, reads, "%c"));
  const DeltaEvaluator evaluator(kernels, device_);
  const auto candidates = CandidatePatterns(kernels, evaluator, {});
  ASSERT_TRUE(candidates.ok());
  EXPECT_EQ((*candidates)[0][0].vertices.size(), 14u);
  // 3 + 1 patterns of each of 12 consumers would be 4^12 combinations.
  EXPECT_LT(evaluator.evaluations(), 2000);
}

TEST_F(FusionStitchingTest, DeltaCountsWhatIsNoLongerWrittenOrRead) {
  const KernelGraph kernels = Kernels(Vertices(64, {{"a", {}}, {"b", {"a"}}, {"c", {"a"}}}, "%b, %c"));
  const DeltaEvaluator evaluator(kernels, device_);
  const double bytes = 64 * 256 * 4;
  // %a is still read by %c: one read is saved, half of a copy.
  EXPECT_DOUBLE_EQ(evaluator.Evaluate({0, 1})->reduced_mem, 1e9 * bytes / 2 / device_.CopyBandwidth(bytes / 2));
  // One write and two reads.
  EXPECT_DOUBLE_EQ(evaluator.Evaluate({0, 1, 2})->reduced_mem, 1e9 * 1.5 * bytes / device_.CopyBandwidth(1.5 * bytes));
  EXPECT_DOUBLE_EQ(evaluator.Evaluate({0, 1, 2})->reduced_calls, 2 * 1e9 * device_.LaunchSeconds(1));
  EXPECT_EQ(evaluator.Evaluate({0, 1})->penalty, 0);
}

TEST_F(FusionStitchingTest, DeltaPenalisesIdleUnitsAndRefusesWhatABlockCannotHold) {
  // A softmax over the first axis of two: nothing of it is independent.
  const std::string text = R"(graph g(%x: f32[512, 1024]) {
    %axis: i64[1] = const {0}
    %e: f32[512, 1024] = Exp(%x)
    %s: f32[1, 1024] = ReduceSum(%e, %axis)
    %y: f32[512, 1024] = Div(%e, %s)
    return %y
  })";
  const KernelGraph kernels = Kernels(text);
  ASSERT_EQ(kernels.size(), 3);
  // 2 MiB of exponentials in one piece.
  EXPECT_FALSE(DeltaEvaluator(kernels, device_).Evaluate({0, 1}).has_value());
  device_.memory[1].size_bytes = 8 << 20;
  EXPECT_EQ(DeltaEvaluator(kernels, device_).Evaluate({0, 1})->penalty, 0);
  device_.parallel_units = 16;
  EXPECT_GT(DeltaEvaluator(kernels, device_).Evaluate({0, 1})->penalty, 0);
}

TEST_F(FusionStitchingTest, BeamSearchKeepsPatternsDisjointAndAcyclic) {
  // Two chains with crossed edges: {p, q} and {r, s} would close a cycle.
  const KernelGraph kernels =
      Kernels(Vertices(64, {{"p", {}}, {"r", {}}, {"q", {"p", "r"}}, {"s", {"r", "p"}}}, "%q, %s"));
  ASSERT_EQ(kernels.size(), 4);
  std::vector<std::vector<ScoredPattern>> candidates(4);
  candidates[0] = {{{0, 2}, 5}};
  candidates[1] = {{{1, 3}, 4}, {{1, 2}, 3}};
  const auto plans = SearchPlans(kernels, candidates, {});
  ASSERT_TRUE(plans.ok());
  ASSERT_EQ(plans->size(), 3u);
  EXPECT_THAT((*plans)[0], ElementsAre(Pattern{0, 2}));
  EXPECT_THAT((*plans)[1], ElementsAre(Pattern{1, 3}));
  EXPECT_THAT((*plans)[2], ElementsAre(Pattern{1, 2}));
}

TEST_F(FusionStitchingTest, ClosureAddsWhatLiesBetween) {
  const KernelGraph kernels =
      Kernels(Vertices(64, {{"a", {}}, {"b", {"a"}}, {"c", {"b"}}, {"d", {"a", "c"}}, {"e", {"d"}}}, "%e"));
  EXPECT_FALSE(kernels.IsConvex({0, 3}));
  EXPECT_EQ(kernels.Closure({0, 3}), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(kernels.Closure({0, 4}), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(kernels.Closure({1, 2}), (std::vector<int>{1, 2}));
}

TEST_F(FusionStitchingTest, CancellationIsNoticedInEveryStage) {
  Read(kLayerNorm);
  int64_t asked = 0;
  options_.cancelled = [&] { return ++asked, false; };
  ASSERT_TRUE(FusionStitchingPlanner()->Plan(graph_, device_, oracle_, options_).ok());
  const int64_t all = asked;
  ASSERT_GT(all, 10);
  for (int64_t at = 1; at <= all; ++at) {
    asked = 0;
    options_.cancelled = [&] { return ++asked >= at; };
    EXPECT_EQ(FusionStitchingPlanner()->Plan(graph_, device_, oracle_, options_).status().code(),
              absl::StatusCode::kCancelled)
        << at;
  }
}

}  // namespace
}  // namespace fusion
