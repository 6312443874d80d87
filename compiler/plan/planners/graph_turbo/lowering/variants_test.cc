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

}  // namespace
}  // namespace fusion::graph_turbo
