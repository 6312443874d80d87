#include "compiler/plan/planners/graph_turbo/lowering/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"
#include "runtime/devices/dsa_sim/stored_machines.h"
#include "runtime/devices/dsa_sim/timing.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::HasSubstr;

TEST(Variants, OnlyThoseOfInstancesSplit) {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  Cluster cluster;
  cluster.local_bytes = 300;
  for (const std::string& variant : VariantNames()) {
    const auto steps = StepsOfVariant(graph, variant, cluster);
    ASSERT_TRUE(steps.ok());
    EXPECT_EQ(steps->size() > 4, variant == "instances" || variant == "graph_turbo") << variant;
  }
  EXPECT_THAT(std::string(StepsOfVariant(graph, "tvm", cluster).status().message()),
              HasSubstr("there are tvm_like, astitch_like, llb, l1, instances, graph_turbo"));
}

TEST(Variants, FasterMemoriesAreNoSlower) {
  const OpGraph graph = OpGraphFromText(FourStages(32), 2);
  const dsa::Machine machine = OneCluster(*dsa::StoredMachine("stcp920"));
  std::map<std::string, double> cycles;
  for (const std::string& variant : VariantNames()) {
    const auto lowered = LowerVariant(graph, variant, Cluster(), machine, DType::kF16);
    ASSERT_TRUE(lowered.ok()) << lowered.status().message();
    cycles[variant] = dsa::TimeProgram(machine, lowered->program).cycles;
  }
  EXPECT_LE(cycles["llb"], cycles["tvm_like"]);
  EXPECT_LE(cycles["l1"], cycles["llb"]);
  EXPECT_LT(cycles["graph_turbo"], cycles["instances"]);
}

TEST(Variants, InstancesAreL1WithOtherSteps) {
  EXPECT_TRUE(*EqualButForSteps("l1", "instances"));
  EXPECT_FALSE(*EqualButForSteps("l1", "graph_turbo"));
  EXPECT_FALSE(*EqualButForSteps("l1", "llb"));
  EXPECT_FALSE(*EqualButForSteps("l1", "astitch_like"));
  EXPECT_FALSE(EqualButForSteps("l1", "tvm").ok());
}

void ExpectEqual(const dsa::Workload& a, const dsa::Workload& b, const std::string& variant) {
  ASSERT_EQ(a.size(), b.size()) << variant;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a.task(i), b.task(i)) << variant << " " << i;
    ASSERT_EQ(a.Waits(i), b.Waits(i)) << variant << " " << i;
  }
}

// The workload is that of the program, whether the program is made or not.
TEST(Variants, AWorkloadNeedsNoProgram) {
  const dsa::Machine machine = OneCluster(*dsa::StoredMachine("stcp920"));
  const OpGraph graph = OpGraphFromText(R"(graph g(%ids: i64[8, 6]) {
    %table: f32[400, 512] = const #3d0000003d000000
    %w: f32[512, 512] = const #3d0000003e000000
    %e: f32[8, 6, 512] = Gather(%table, %ids) {axis = 0}
    %m: f32[8, 6, 512] = MatMul(%e, %w)
    %y: f32[8, 6, 512] = Softmax(%m) {axis = -1}
    return %y
  })",
                                        2);
  Cluster cluster;
  cluster.local_bytes = 8 << 10;
  for (const std::string& variant : VariantNames()) {
    const auto steps = StepsOfVariant(graph, variant, cluster);
    ASSERT_TRUE(steps.ok());
    const auto program = LowerSteps(graph, *steps, variant, machine, DType::kF16);
    ASSERT_TRUE(program.ok()) << program.status().message();
    const auto alone = LowerSteps(graph, *steps, variant, machine, DType::kF16, /*instructions=*/false);
    ASSERT_TRUE(alone.ok());
    EXPECT_TRUE(alone->program.instructions.empty() && alone->program.buffers.empty());
    EXPECT_GT(program->program.instructions.size(), 20u);
    ExpectEqual(program->workload, dsa::Workload(machine, program->program), variant);
    ExpectEqual(alone->workload, program->workload, variant);
  }
}

}  // namespace
}  // namespace fusion::graph_turbo
