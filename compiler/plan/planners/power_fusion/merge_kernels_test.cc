#include "compiler/plan/planners/power_fusion/merge_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
