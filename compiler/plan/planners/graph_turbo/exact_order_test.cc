#include "compiler/plan/planners/graph_turbo/exact_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "compiler/plan/planners/graph_turbo/order.h"
#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;

// Edges go from lower to higher numbers.
InstanceGraph GraphOf(int count, const std::vector<std::pair<int, int>>& edges) {
  InstanceGraph graph;
  graph.instances.resize(count);
  for (const auto& [from, to] : edges) {
    graph.instances[from].consumers.push_back(to);
    graph.instances[to].producers.push_back(from);
  }
  return graph;
}

bool IsOrder(const InstanceGraph& graph, const std::vector<int>& order) {
  std::vector<int> place(graph.instances.size(), kNone);
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int>(i);
  for (size_t i = 0; i < place.size(); ++i) {
    for (const int producer : graph.instances[i].producers) {
      if (place[producer] >= place[i]) return false;
    }
  }
  return order.size() == place.size() && std::count(place.begin(), place.end(), kNone) == 0;
}

TEST(ExactOrder, IsTheBestOfAllOrders) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const int count = 2 + static_cast<int>(random() % 6);
    std::vector<std::pair<int, int>> edges;
    for (int to = 1; to < count; ++to) {
      for (int from = 0; from < to; ++from) {
        if (random() % 3 == 0) edges.emplace_back(from, to);
      }
    }
    const InstanceGraph graph = GraphOf(count, edges);
    std::vector<InstanceBytes> bytes(count);
    for (InstanceBytes& b : bytes) {
      b.outputs = static_cast<double>(random() % 20);
      b.own = b.outputs + static_cast<double>(random() % 10);
    }
    const double capacity = static_cast<double>(random() % 50);
    const auto order = ExactOrder(graph, bytes, capacity);
    ASSERT_TRUE(order.has_value());
    ASSERT_TRUE(IsOrder(graph, *order));
    const OrderCost cost = CostOfOrder(graph, bytes, capacity, *order);
    std::vector<int> any(count);
    std::iota(any.begin(), any.end(), 0);
    do {
      if (!IsOrder(graph, any)) continue;
      EXPECT_GE(CostOfOrder(graph, bytes, capacity, any), cost) << trial;
    } while (std::next_permutation(any.begin(), any.end()));
  }
}

// Two chains of three that meet: 0 1 2 and 3 4 5, whose first results are large. One after the other, one large result
// waits at a time.
TEST(ExactOrder, OneChainAfterTheOther) {
  const InstanceGraph graph = GraphOf(7, {{0, 1}, {1, 2}, {2, 6}, {3, 4}, {4, 5}, {5, 6}});
  const std::vector<InstanceBytes> bytes = {{8, 8}, {8, 8}, {1, 1}, {6, 6}, {6, 6}, {2, 2}, {1, 1}};
  EXPECT_THAT(ExactOrder(graph, bytes, 16).value(), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  const std::vector<int> breadth = BreadthFirstOrder(graph);
  EXPECT_EQ(CostOfOrder(graph, bytes, 16, {0, 1, 2, 3, 4, 5, 6}).overflow, 0);
  EXPECT_GT(CostOfOrder(graph, bytes, 16, breadth).overflow, 0);
}

TEST(ExactOrder, IsNoWorseThanTheOthersOnFigure6) {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  const Grouping grouping = GroupSubGraphs(graph, {3000, 1.25});
  const InstanceGraph instances = MakeInstances(graph, grouping.sub_graphs);
  const std::vector<InstanceBytes> bytes = BytesOfInstances(graph, grouping.sub_graphs, instances);
  EXPECT_EQ(bytes[0].outputs, 1024);  // an image of the first stage
  const auto order = ExactOrder(instances, bytes, 3000);
  ASSERT_TRUE(order.has_value());
  const OrderCost cost = CostOfOrder(instances, bytes, 3000, *order);
  EXPECT_LT(cost.overflow, CostOfOrder(instances, bytes, 3000, BreadthFirstOrder(instances)).overflow);
  for (auto* const other : {BreadthFirstOrder, DepthFirstOrder, DemandOrder}) {
    EXPECT_LE(cost, CostOfOrder(instances, bytes, 3000, other(instances)));
  }
}

TEST(ExactOrder, GivesUpWhereThereIsTooMuch) {
  const InstanceGraph wide = GraphOf(40, {});  // 2^40 sets
  EXPECT_FALSE(ExactOrder(wide, std::vector<InstanceBytes>(40), 1).has_value());
  const InstanceGraph many = GraphOf(65, {});
  EXPECT_FALSE(ExactOrder(many, std::vector<InstanceBytes>(65), 1).has_value());
  EXPECT_FALSE(ExactOrder(GraphOf(0, {}), {}, 1).has_value());
  std::vector<std::pair<int, int>> chain;
  for (int i = 0; i + 1 < 64; ++i) chain.emplace_back(i, i + 1);
  EXPECT_TRUE(ExactOrder(GraphOf(64, chain), std::vector<InstanceBytes>(64), 1).has_value());
}

}  // namespace
}  // namespace fusion::graph_turbo
