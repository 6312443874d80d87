#include "compiler/plan/planners/power_fusion/search_templates.h"

#include <gtest/gtest.h>

#include "compiler/cost/stored_devices.h"
#include "compiler/plan/planners/power_fusion/testing/operators.h"

namespace fusion::power_fusion {
namespace {

// Attention of GPT-2 with a cache, one token: 12 heads of 64, 256 positions.
constexpr char kAttention[] =
    R"(graph g(%q: f32[12, 1, 64], %k: f32[12, 255, 64], %new_k: f32[12, 1, 64], %v: f32[12, 255, 64], %new_v: f32[12, 1, 64]) {
  %keys: f32[12, 256, 64] = Concat(%k, %new_k) {axis = 1}
  %values: f32[12, 256, 64] = Concat(%v, %new_v) {axis = 1}
  %t: f32[12, 64, 256] = Transpose(%keys) {perm = ints[0, 2, 1]}
  %scores: f32[12, 1, 256] = MatMul(%q, %t)
  %p: f32[12, 1, 256] = Softmax(%scores) {axis = 2}
  %y: f32[12, 1, 64] = MatMul(%p, %values)
  return %y, %keys, %values
})";

const GOperator* ReduceOf(const Operators& graph, const Gir& gir, const std::string& name) {
  for (const GOperator& op : gir.operators) {
    if (op.kind == GKind::kReduce && op.op == graph.Of(name).node) return &op;
  }
  ADD_FAILURE() << "no reduction makes %" << name;
  return nullptr;
}

// Figure 12: the two products have the same shapes and different slices. Scores reduce along the contiguous elements of
// a key, the results along positions, from run to run.
TEST(TemplateSearch, ProductsOfAttentionWithACacheHaveDifferentSlices) {
  const Operators graph(kAttention);
  EXPECT_FALSE(graph.Of("scores").compute_bound);
  EXPECT_FALSE(graph.Of("y").compute_bound);
  TemplateSearch search(graph.graph, graph.basic, graph.device);
  const MergePlan plan = search.Fastest(graph.nodes, graph.results);
  const GOperator *scores = ReduceOf(graph, plan.gir, "scores"), *y = ReduceOf(graph, plan.gir, "y");
  ASSERT_TRUE(scores != nullptr && y != nullptr);
  EXPECT_TRUE(scores->along_width) << Print(graph.graph, plan.gir);
  EXPECT_FALSE(y->along_width) << Print(graph.graph, plan.gir);
  // One unit a head: everything between the products stays with it.
  const MovedBytes moved = BytesOf(plan.gir, graph.device);
  EXPECT_EQ(moved.phases, 1) << Print(graph.graph, plan.gir);
  EXPECT_EQ(plan.gir.units, 12);
  constexpr double kCache = 12 * 256 * 64 * 4, kToken = 12 * 64 * 4;
  EXPECT_EQ(moved.written, 2 * kCache + kToken) << "the caches and the result";
  EXPECT_EQ(moved.read, 2 * kCache + kToken) << "both caches with the new token, and the query";
}

TEST(TemplateSearch, RowsStayWithTheirUnit) {
  const Operators graph(R"(graph g(%x: f32[64, 256]) {
    %y: f32[64, 256] = Softmax(%x) {axis = 1}
    return %y
  })");
  TemplateSearch search(graph.graph, graph.basic, graph.device);
  const MergePlan plan = search.Fastest(graph.nodes, graph.results);
  EXPECT_EQ(plan.gir.units, 64);
  const MovedBytes moved = BytesOf(plan.gir, graph.device);
  EXPECT_EQ(moved.phases, 1) << Print(graph.graph, plan.gir);
  EXPECT_EQ(moved.read + moved.written, 2 * 64 * 256 * 4);
  EXPECT_GT(plan.rewrites.inserted, 0);
  // The merge plan is that of the fewest nanoseconds.
  EXPECT_EQ(plan.ns, EstimateNs(plan.gir, graph.device));
}

TEST(TemplateSearch, KeepsUnitsOfAGpuBusy) {
  const auto gpu = StoredDevice("cuda:sm_80");
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Operators graph(R"(graph g(%x: f32[4096, 64]) {
    %a: f32[4096, 64] = Exp(%x)
    %b: f32[4096, 64] = Neg(%a)
    return %b
  })",
                        *gpu);
  TemplateSearch search(graph.graph, graph.basic, graph.device);
  const MergePlan plan = search.Fastest(graph.nodes, graph.results);
  EXPECT_GE(plan.gir.units, gpu->parallel_units);
}

}  // namespace
}  // namespace fusion::power_fusion
