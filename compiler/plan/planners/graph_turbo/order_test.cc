#include "compiler/plan/planners/graph_turbo/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;

// Instances 0 to 7 are of the first stage, 8 to 11 of the second, 12 and 13 of the third, 14 of the last.
InstanceGraph Figure6() {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  return MakeInstances(graph, GroupSubGraphs(graph, {3000, 1.25}).sub_graphs);
}

TEST(Order, BreadthFirstIsFigure7a) {
  EXPECT_THAT(BreadthFirstOrder(Figure6()), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
}

// Figures 3b and 7f: two of the first stage, one of the second; again; one of the third; and so on.
TEST(Order, DepthFirstIsFigure7f) {
  EXPECT_THAT(DepthFirstOrder(Figure6()), ElementsAre(7, 6, 11, 5, 4, 10, 13, 3, 2, 9, 1, 0, 8, 12, 14));
}

TEST(Order, DemandOrderMakesWhatTheNextOneNeeds) {
  EXPECT_THAT(DemandOrder(Figure6()), ElementsAre(0, 1, 8, 2, 3, 9, 12, 4, 5, 10, 6, 7, 11, 13, 14));
}

TEST(Order, AllOrdersRespectEveryEdge) {
  // A chain of halos: instances that wait for several.
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[2, 4, 16, 4]) {
    %v: f32[4, 4, 3, 3] = const #0000000000000000
    %a: f32[2, 4, 16, 4] = Conv(%x, %v) {pads = ints[1, 1, 1, 1]}
    %b: f32[2, 4, 16, 4] = Conv(%a, %v) {pads = ints[1, 1, 1, 1]}
    %c: f32[2, 4, 16, 4] = Add(%a, %b)
    return %c
  })");
  Split rows;
  rows.f = 8;
  rows.factors = {2, 1, 4, 1};
  const InstanceGraph instances =
      MakeInstances(graph, {{SubGraph{{0}}, rows}, {SubGraph{{1}}, rows}, {SubGraph{{2}}, rows}});
  for (const std::vector<int>& order :
       {BreadthFirstOrder(instances), DepthFirstOrder(instances), DemandOrder(instances)}) {
    ASSERT_EQ(order.size(), instances.instances.size());
    std::vector<bool> done(order.size(), false);
    for (const int i : order) {
      EXPECT_FALSE(done[i]);
      for (const int producer : instances.instances[i].producers) EXPECT_TRUE(done[producer]);
      done[i] = true;
    }
  }
}

}  // namespace
}  // namespace fusion::graph_turbo
