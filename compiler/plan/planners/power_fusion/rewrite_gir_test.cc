#include "compiler/plan/planners/power_fusion/rewrite_gir.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/plan/planners/power_fusion/search_templates.h"
#include "compiler/plan/planners/power_fusion/testing/operators.h"

namespace fusion::power_fusion {
namespace {

// Every operator with its template of so many units, leading axes first.
Gir MergedAt(const Operators& graph, int64_t units) {
  std::vector<ChosenTemplate> chosen;
  for (const ecg::NodeId node : graph.nodes) {
    const std::vector<Template> templates = TemplatesOf(graph.basic[node], graph.device);
    const auto fits = std::find_if(templates.begin(), templates.end(),
                                   [&](const Template& one) { return one.units == units && one.chunks == 1; });
    EXPECT_TRUE(fits != templates.end()) << "node " << node;
    if (fits != templates.end()) chosen.push_back({&graph.basic[node], *fits});
  }
  return MergeGirs(graph.graph, chosen, units, graph.results);
}

int Count(const Gir& gir, GKind kind) {
  return static_cast<int>(
      std::count_if(gir.operators.begin(), gir.operators.end(), [&](const GOperator& op) { return op.kind == kind; }));
}

// Figure 4 and 8: units that write and read the same slices need no synchronisation and no memory.
TEST(RewriteGir, InsertsLaneSynchronisationsAndMergesWhatTheyJoin) {
  const Operators graph(R"(graph g(%x: f32[64, 32]) {
    %s: f32[64, 32] = Sigmoid(%x)
    %m: f32[64, 32] = Mul(%s, %x)
    return %m
  })");
  Gir gir = MergedAt(graph, 64);
  EXPECT_EQ(BytesOf(gir, graph.device).read + BytesOf(gir, graph.device).written, 5 * 64 * 32 * 4);
  const RewriteCounts counts = RewriteGir(graph.basic, UnitsOf(graph.device), &gir);
  EXPECT_EQ(counts.inserted, 1);
  EXPECT_EQ(counts.merged, 2) << "what is written and read, and both reads of %x";
  EXPECT_EQ(Print(graph.graph, gir), R"(parallel 64 {
  move %x@DRAM[1 x 32 / 0] -> %x@registers[1 x 32 / 0]
  elementwise %x@registers[1 x 32 / 0] -> %s@registers[1 x 32 / 0]
  elementwise %s@registers[1 x 32 / 0], %x@registers[1 x 32 / 0] -> %m@registers[1 x 32 / 0]
  move %m@registers[1 x 32 / 0] -> %m@DRAM[1 x 32 / 0]
}
)");
}

// Figure 6: two movements with arithmetic between them are stuck at synchronisations of the device, until the
// elementwise gOperator is swapped.
TEST(RewriteGir, SwapsElementwiseOperatorsOutOfTheWayOfMovements) {
  const Operators graph(R"(graph g(%x: f32[64, 32]) {
    %t: f32[32, 64] = Transpose(%x) {perm = ints[1, 0]}
    %e: f32[32, 64] = Exp(%t)
    %u: f32[64, 32] = Transpose(%e) {perm = ints[1, 0]}
    %y: f32[64, 32] = Neg(%u)
    return %y
  })");
  // Rows of 32 and rows of 64 are shared out among units of different numbers, so each unit has all: the movements
  // differ in order, and columns of one are rows of the other.
  TemplateSearch search(graph.graph, graph.basic, graph.device);
  const MergePlan plan = search.Fastest(graph.nodes, graph.results);
  const MovedBytes moved = BytesOf(plan.gir, graph.device);
  EXPECT_EQ(moved.phases, 1);
  EXPECT_EQ(moved.read, 64 * 32 * 4);
  EXPECT_EQ(moved.written, 64 * 32 * 4);

  Gir fixed = MergedAt(graph, 32 * 64);
  EXPECT_EQ(BytesOf(fixed, graph.device).read, 4 * 64 * 32 * 4);
  const RewriteCounts counts = RewriteGir(graph.basic, UnitsOf(graph.device), &fixed);
  EXPECT_EQ(counts.swapped, 1);
  EXPECT_EQ(BytesOf(fixed, graph.device).read, 64 * 32 * 4);
  EXPECT_EQ(BytesOf(fixed, graph.device).written, 64 * 32 * 4);
  EXPECT_EQ(Count(fixed, GKind::kSync), 0);
  EXPECT_EQ(Count(fixed, GKind::kMove), 2) << Print(graph.graph, fixed);
}

// Figure 3: ShuffleNet merges two tensors, shuffles channels and divides the result. Everything is one movement.
TEST(RewriteGir, ConcatShuffleSplitMovesEachElementOnce) {
  const Operators graph(R"(graph g(%a: f32[1, 58, 28, 28], %b: f32[1, 58, 28, 28]) {
    %five: i64[5] = const {1, 2, 58, 28, 28}
    %four: i64[4] = const {1, 116, 28, 28}
    %zero: i64[1] = const {0}
    %half: i64[1] = const {58}
    %end: i64[1] = const {116}
    %axis: i64[1] = const {1}
    %c: f32[1, 116, 28, 28] = Concat(%a, %b) {axis = 1}
    %r: f32[1, 2, 58, 28, 28] = Reshape(%c, %five)
    %t: f32[1, 58, 2, 28, 28] = Transpose(%r) {perm = ints[0, 2, 1, 3, 4]}
    %s: f32[1, 116, 28, 28] = Reshape(%t, %four)
    %left: f32[1, 58, 28, 28] = Slice(%s, %zero, %half, %axis)
    %right: f32[1, 58, 28, 28] = Slice(%s, %half, %end, %axis)
    return %left, %right
  })");
  TemplateSearch search(graph.graph, graph.basic, graph.device);
  const MergePlan plan = search.Fastest(graph.nodes, graph.results);
  const MovedBytes moved = BytesOf(plan.gir, graph.device);
  constexpr double kTensor = 58 * 28 * 28 * 4;
  EXPECT_EQ(moved.read, 2 * kTensor) << Print(graph.graph, plan.gir);
  EXPECT_EQ(moved.written, 2 * kTensor);
  EXPECT_EQ(moved.phases, 1);
  EXPECT_EQ(Count(plan.gir, GKind::kSync), 0) << Print(graph.graph, plan.gir);
}

// A reduction's results cannot be swapped: units that need all of them wait for the device.
TEST(RewriteGir, ReductionsKeepTheirSynchronisation) {
  const Operators graph(R"(graph g(%x: f32[64, 64]) {
    %axis: i64[1] = const {1}
    %first: i64[1] = const {0}
    %s: f32[64, 1] = ReduceSum(%x, %axis)
    %d: f32[64, 64] = Div(%x, %s)
    %m: f32[1, 64] = ReduceMax(%d, %first)
    return %m
  })");
  Gir gir = MergedAt(graph, 64);
  RewriteGir(graph.basic, UnitsOf(graph.device), &gir);
  const MovedBytes moved = BytesOf(gir, graph.device);
  EXPECT_EQ(moved.phases, 2) << Print(graph.graph, gir);
}

// Registers of one phase are gone in the next.
TEST(RewriteGir, NothingNearCrossesASynchronisationOfTheDevice) {
  const Operators graph(R"(graph g(%x: f32[64, 64]) {
    %axis: i64[2] = const {0, 1}
    %row: i64[1] = const {1}
    %r: f32[64, 1] = ReduceSum(%x, %row)
    %e: f32[64, 64] = Div(%x, %r)
    %s: f32[1, 1] = ReduceSum(%e, %axis)
    %y: f32[64, 64] = Div(%e, %s)
    return %y
  })");
  std::vector<ChosenTemplate> chosen;
  for (const ecg::NodeId node : graph.nodes) {
    const std::vector<Template> templates = TemplatesOf(graph.basic[node], graph.device);
    chosen.push_back(
        {&graph.basic[node], templates.size() > 1 && templates[1].units == 64 ? templates[1] : templates[0]});
  }
  Gir gir = MergeGirs(graph.graph, chosen, 64, graph.results);
  RewriteGir(graph.basic, UnitsOf(graph.device), &gir);
  const std::vector<int> phases = PhasesOf(gir), makers = MakersOf(gir);
  for (size_t o = 0; o < gir.operators.size(); ++o) {
    for (const int slice : gir.operators[o].reads) {
      if (makers[slice] < 0 || gir.slices[slice].memory == Scope::kDevice) continue;
      EXPECT_EQ(phases[makers[slice]], phases[o]) << Print(graph.graph, gir);
    }
  }
}

}  // namespace
}  // namespace fusion::power_fusion
