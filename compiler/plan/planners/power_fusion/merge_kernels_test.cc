#include "compiler/plan/planners/power_fusion/merge_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/plan/planners/power_fusion/testing/operators.h"
#include "compiler/plan/testing/accepting_oracle.h"

namespace fusion::power_fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Merged {
  Merged(const std::string& text, AcceptingOracle* oracle, const DeviceModel& device = TypicalCore())
      : graph(text, device), merger(graph.graph, graph.basic, graph.device, *oracle, options) {
    EXPECT_TRUE(merger.Run().ok());
    kernels = merger.Kernels();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const PlannedKernel& kernel : kernels) names.push_back(NamesOf(graph.graph, kernel.fusion_block.nodes));
    return names;
  }
  const std::string& Refusal(const std::string& producer, const std::string& consumer) const {
    return merger.Refusal(graph.Of(producer).node, graph.Of(consumer).node);
  }
  PlanOptions options;
  Operators graph;
  KernelMerger merger;
  std::vector<PlannedKernel> kernels;
};

TEST(KernelMerger, MemoryBoundOperatorsBecomeOneKernel) {
  AcceptingOracle oracle;
  const Merged merged(R"(graph g(%x: f32[64, 64]) {
    %axis: i64[1] = const {1}
    %e: f32[64, 64] = Exp(%x)
    %s: f32[64, 1] = ReduceSum(%e, %axis)
    %y: f32[64, 64] = Div(%e, %s)
    return %y
  })",
                      &oracle);
  EXPECT_THAT(merged.Names(), ElementsAre("e+s+y"));
  ASSERT_TRUE(merged.kernels[0].moved.has_value());
  EXPECT_EQ(merged.kernels[0].moved->read, 64 * 64 * 4);
}

TEST(KernelMerger, AKernelHasOneOperatorThatIsBoundByComputation) {
  AcceptingOracle oracle;
  const Merged merged(R"(graph g(%x: f32[256, 256], %w: f32[256, 256]) {
    %p: f32[256, 256] = MatMul(%x, %w)
    %r: f32[256, 256] = Relu(%p)
    %q: f32[256, 256] = MatMul(%r, %w)
    return %q
  })",
                      &oracle);
  EXPECT_THAT(merged.Names(), ElementsAre("p+r", "q"));
  EXPECT_THAT(merged.Refusal("r", "q"), HasSubstr("bound by computation"));
}

TEST(KernelMerger, TheModelPrunesMergesThatOnlyAddABarrier) {
  AcceptingOracle oracle;
  // Sums of rows, then of columns of all: whoever adds up the columns waits for every row.
  const Merged merged(R"(graph g(%x: f32[4096, 4096]) {
    %rows: i64[1] = const {1}
    %columns: i64[1] = const {0}
    %s: f32[4096, 1] = ReduceSum(%x, %rows)
    %d: f32[4096, 4096] = Div(%x, %s)
    %c: f32[1, 4096] = ReduceMax(%d, %columns)
    return %c
  })",
                      &oracle);
  EXPECT_THAT(merged.Names(), ElementsAre("s", "d+c"));
  EXPECT_THAT(merged.Refusal("s", "d"), HasSubstr("GIR-Graph is modelled at"));
}

TEST(KernelMerger, TheScheduleRefuses) {
  AcceptingOracle oracle;
  oracle.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) { return fusion_block.nodes.size() > 1; };
  const Merged merged("graph g(%x: f32[64]) {\n %a: f32[64] = Exp(%x)\n %b: f32[64] = Neg(%a)\n return %b\n}", &oracle);
  EXPECT_THAT(merged.Names(), ElementsAre("a", "b"));
  EXPECT_EQ(merged.Refusal("a", "b"), "the test refuses it");
}

// A schedule may refuse what would leave units idle unless every hand-over is named.
TEST(KernelMerger, HandOversAreNamedWhereTheScheduleRefuses) {
  AcceptingOracle oracle;
  bool never = false;
  oracle.refuse = [&](const ecg::Graph& graph, const FusionBlock& fusion_block) {
    const size_t all = InnerHandOvers(graph, fusion_block).size();
    return fusion_block.nodes.size() > 1 && (never || fusion_block.inner.size() < all);
  };
  const char* text = R"(graph g(%x: f32[64, 64]) {
    %axis: i64[1] = const {1}
    %e: f32[64, 64] = Exp(%x)
    %s: f32[64, 1] = ReduceSum(%e, %axis)
    %y: f32[64, 64] = Div(%e, %s)
    return %y
  })";
  const Merged merged(text, &oracle);
  EXPECT_THAT(merged.Names(), ElementsAre("e+s+y"));
  for (const HandOver& hand_over : merged.kernels[0].fusion_block.inner) EXPECT_EQ(hand_over.furthest, Scope::kBlock);
  EXPECT_EQ(merged.kernels[0].fusion_block.inner.size(), 3u);
  never = true;
  EXPECT_THAT(Merged(text, &oracle).Names(), ElementsAre("e", "s", "y"));
}

// The schedule wants a barrier where GIR needs none: a launch costs more than that on a GPU.
TEST(KernelMerger, HandOversMayCrossABarrierThatGirDoesNotSee) {
  AcceptingOracle oracle;
  oracle.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) {
    const auto at_device = [](const HandOver& hand_over) { return hand_over.furthest == Scope::kDevice; };
    return fusion_block.nodes.size() > 1 &&
           std::none_of(fusion_block.inner.begin(), fusion_block.inner.end(), at_device);
  };
  const char* text =
      "graph g(%x: f32[64, 64]) {\n %a: f32[64, 64] = Exp(%x)\n %b: f32[64, 64] = Neg(%a)\n return %b\n}";
  DeviceModel gpu = TypicalCore();
  gpu.kind = "cuda";
  gpu.launch_s = 4e-6;
  gpu.barrier_s = 2e-6;
  EXPECT_THAT(Merged(text, &oracle, gpu).Names(), ElementsAre("a+b"));
  gpu.barrier_s = 5e-6;
  EXPECT_THAT(Merged(text, &oracle, gpu).Names(), ElementsAre("a", "b"));
  EXPECT_THAT(Merged(text, &oracle).Names(), ElementsAre("a", "b")) << "phases of a processor cost what launches cost";
}

TEST(KernelMerger, SlowerKernelsStayApart) {
  class Slow : public AcceptingOracle {
   public:
    absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
      absl::StatusOr<FusionBlockAccount> account = AcceptingOracle::Fit(graph, fusion_block);
      if (account.ok()) account->estimate_ns *= 10;
      return account;
    }
  } slow;
  const Merged merged("graph g(%x: f32[64]) {\n %a: f32[64] = Exp(%x)\n %b: f32[64] = Neg(%a)\n return %b\n}", &slow);
  EXPECT_THAT(merged.Names(), ElementsAre("a", "b"));
  EXPECT_THAT(merged.Refusal("a", "b"), HasSubstr("us as one kernel against"));
}

}  // namespace
}  // namespace fusion::power_fusion
