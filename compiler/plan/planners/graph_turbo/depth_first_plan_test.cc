#include "compiler/plan/planners/graph_turbo/depth_first_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::HasSubstr;

// A cluster of one core whose LB holds 3000 bytes for activations: Figure 6's split.
Cluster SmallCluster() {
  Cluster cluster;
  cluster.cores = 1;
  cluster.local_bytes = 3000;
  cluster.global_bytes = 16 << 10;
  cluster.weights_share = 0;
  return cluster;
}

TEST(DepthFirstPlan, OrdersTheStagesDepthFirst) {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  const DepthFirstPlan plan = MakeDepthFirstPlan(graph, SmallCluster());
  // Breadth first, eight images of the first stage would be live at once: 8 KB.
  EXPECT_NE(plan.order_name, "BFS");
  EXPECT_EQ(plan.instances.instances.size(), 15);
  EXPECT_EQ(plan.outputs.ddr.count, 0);
  EXPECT_EQ(plan.outputs.ddr.count + plan.outputs.global.count + plan.outputs.local.count, 15);
  EXPECT_EQ(plan.returned, 1);
  EXPECT_EQ(plan.recomputation, 1);
  EXPECT_THAT(Describe(graph, plan), HasSubstr("sub-graph b [8, 8, 4, 4]: 1 operators, 4 instances by 4x1x1x1"));
}

TEST(DepthFirstPlan, TheThirdOrderCanBeLeftOut) {
  Cluster cluster = SmallCluster();
  cluster.literal = true;
  EXPECT_EQ(MakeDepthFirstPlan(OpGraphFromText(FourStages(8)), cluster).order_name, "DFS");
}

TEST(DepthFirstPlan, ALargeLbNeedsNoInstances) {
  Cluster cluster = SmallCluster();
  cluster.local_bytes = 1 << 20;
  const OpGraph graph = OpGraphFromText(FourStages(8));
  const DepthFirstPlan plan = MakeDepthFirstPlan(graph, cluster);
  EXPECT_EQ(plan.grouping.sub_graphs.size(), 1);
  EXPECT_EQ(plan.instances.instances.size(), 1);
  EXPECT_EQ(plan.outputs.local.count, 4);
}

// Two products with weights of 4 KB each, of which the GB keeps one: four instances would read the other four times.
TEST(DepthFirstPlan, LargerInstancesReadWeightsLessOften) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[16, 32]) {
    %w1: f32[32, 32] = const #3d0000003d000000
    %w2: f32[32, 32] = const #3e0000003d000000
    %a: f32[16, 32] = MatMul(%x, %w1)
    %b: f32[16, 32] = Relu(%a)
    %y: f32[16, 32] = MatMul(%b, %w2)
    return %y
  })");
  Cluster cluster = SmallCluster();
  cluster.local_bytes = 1024;
  cluster.global_bytes = 6 << 10;
  const DepthFirstPlan plan = MakeDepthFirstPlan(graph, cluster);
  cluster.weights = false;
  const DepthFirstPlan without = MakeDepthFirstPlan(graph, cluster);
  EXPECT_EQ(without.weight_bytes, 0) << "not counted";
  EXPECT_LT(plan.instances.instances.size(), without.instances.instances.size());
  EXPECT_EQ(plan.weight_bytes, 8192) << "each weight once";
  EXPECT_EQ(plan.outputs.ddr.count, 0);
}

TEST(DepthFirstPlan, WithoutFastMemoryEverythingIsInDdr) {
  Cluster cluster = SmallCluster();
  cluster.local_bytes = 1;
  cluster.global_bytes = 1;
  const OpGraph graph = OpGraphFromText(FourStages(2));
  const DepthFirstPlan plan = MakeDepthFirstPlan(graph, cluster);
  EXPECT_EQ(plan.outputs.ddr.count, 4);
  EXPECT_EQ(plan.outputs.local.count + plan.outputs.global.count, 0);
  EXPECT_THAT(Describe(graph, plan), HasSubstr("no instance fits"));
}

}  // namespace
}  // namespace fusion::graph_turbo
