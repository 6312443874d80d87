#include "compiler/plan/planners/graph_turbo/weight_traffic.h"

#include <gtest/gtest.h>

#include <vector>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

// Two products of [4, 8] by [8, 8]: weights of 256 bytes each.
constexpr char kTwoProducts[] = R"(graph g(%x: f32[4, 8]) {
  %w1: f32[8, 8] = const #3d0000003d000000
  %w2: f32[8, 8] = const #3e0000003d000000
  %a: f32[4, 8] = MatMul(%x, %w1)
  %y: f32[4, 8] = MatMul(%a, %w2)
  return %y
})";

// Both operators are one sub-graph of `f` instances, or two sub-graphs.
std::vector<GroupedSubGraph> Groups(bool together, int64_t f) {
  Split split;
  split.f = f;
  split.factors = {f, 1};
  if (together) return {{{{0, 1}}, split}};
  return {{{{0}}, split}, {{{1}}, split}};
}

double Bytes(const std::vector<GroupedSubGraph>& groups, std::vector<int> order, double room_bytes) {
  const OpGraph graph = OpGraphFromText(kTwoProducts);
  return WeightBytesFromDdr(graph, groups, MakeInstances(graph, groups), order, room_bytes);
}

TEST(WeightTraffic, InstancesReadAgainWhatTheGbCannotKeep) {
  EXPECT_EQ(Bytes(Groups(true, 1), {0}, 512), 512);
  EXPECT_EQ(Bytes(Groups(true, 4), {0, 1, 2, 3}, 512), 512) << "both stay";
  // One stays: the other one is read by each instance. The last use of either needs no room behind it.
  EXPECT_EQ(Bytes(Groups(true, 4), {0, 1, 2, 3}, 300), 256 + 4 * 256);
  EXPECT_EQ(Bytes(Groups(true, 4), {0, 1, 2, 3}, 255), 8 * 256) << "neither stays";
}

TEST(WeightTraffic, OrderDecides) {
  // Instances 0 to 3 are those of the first product, 4 to 7 of the second.
  EXPECT_EQ(Bytes(Groups(false, 4), {0, 1, 2, 3, 4, 5, 6, 7}, 300), 512) << "breadth first, one weight at a time";
  EXPECT_GT(Bytes(Groups(false, 4), {0, 4, 1, 5, 2, 6, 3, 7}, 300), 1024) << "depth first";
}

TEST(WeightTraffic, TablesStayInDdr) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%ids: i64[6]) {
    %table: f32[10, 16] = const #3d0000003e000000
    %b: f32[16] = const #3d0000003e000000
    %e: f32[6, 16] = Gather(%table, %ids) {axis = 0}
    %y: f32[6, 16] = Add(%e, %b)
    return %y
  })");
  const std::vector<GroupedSubGraph> groups = {{{{0}}, {}}, {{{1}}, {}}};
  EXPECT_EQ(WeightBytesFromDdr(graph, groups, MakeInstances(graph, groups), {0, 1}, 1000), 64);
}

}  // namespace
}  // namespace fusion::graph_turbo
