// The duties of every planner. The names come from the list, so that a new planner is held to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/plan/testing/accepting_oracle.h"
#include "compiler/simplify/passes.h"

namespace fusion {
namespace {

// Operators of all kinds on 8 x 8 matrices; values have several readers, and some are returned.
ecg::Graph RandomGraph(unsigned seed, int nodes) {
  std::mt19937 random(seed);
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  std::string text = "graph g(%x: f32[8, 8], %row: f32[1, 8]) {\n    %w: f32[8, 8] = const #0000000000000001\n";
  absl::StrAppend(&text,
                  "    %s: i64[2] = const {4, 16}\n    %t: i64[2] = const {8, 8}\n    %axis: i64[1] = const {1}\n");
  std::vector<std::string> values = {"x"};
  std::set<std::string> unused;
  auto pick = [&] {
    const std::string value = values[values.size() - 1 - below(std::min<size_t>(values.size(), 6))];
    unused.erase(value);
    return "%" + value;
  };
  for (int n = 0; n < nodes; ++n) {
    const std::string value = absl::StrCat("v", n), head = absl::StrCat("    %", value, ": f32[8, 8] = ");
    switch (below(8)) {
      case 0:
        absl::StrAppend(&text, head, "MatMul(", pick(), ", %w)\n");
        break;
      case 1:
        absl::StrAppend(&text, head, "Transpose(", pick(), ") {perm = ints[1, 0]}\n");
        break;
      case 2:
        absl::StrAppend(&text, "    %r", n, ": f32[4, 16] = Reshape(", pick(), ", %s)\n", head, "Reshape(%r", n,
                        ", %t)\n");
        break;
      case 3:
        absl::StrAppend(&text, head, "Softmax(", pick(), ") {axis = 1}\n");
        break;
      case 4: {
        const std::string a = pick(), b = pick();
        absl::StrAppend(&text, head, "Add(", a, ", ", b, ")\n");
        break;
      }
      case 5: {
        const std::string a = pick();
        absl::StrAppend(&text, "    %m", n, ": f32[8, 1] = ReduceMean(", a, ", %axis)\n", head, "Sub(", pick(), ", %m",
                        n, ")\n");
        break;
      }
      case 6:
        absl::StrAppend(&text, head, "Exp(", pick(), ")\n");
        break;
      default:
        absl::StrAppend(&text, head, "Neg(", pick(), ")\n");
    }
    values.push_back(value);
    unused.insert(value);
  }
  absl::StrAppend(&text, "    return %", absl::StrJoin(unused, ", %"), "\n}");
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

// As the pipeline does (open-for-planner).
ecg::Graph GraphFor(const Planner& planner, const ecg::Graph& graph) {
  return planner.WantsOpened() ? simplify::OpenComposites(graph) : graph;
}

std::string Everything(const ecg::Graph& graph, const FusionPlan& plan) {
  std::string text = PrintPlan(graph, plan);
  for (const Decision& d : plan.decisions) absl::StrAppend(&text, d.producer, ">", d.consumer, d.fused, d.reason, "\n");
  for (const FusionBlock& fusion_block : plan.fusion_blocks) {
    for (const HandOver& edge : fusion_block.inner) {
      absl::StrAppend(&text, edge.producer, ">", edge.consumer, ScopeName(edge.nearest), ScopeName(edge.furthest),
                      "\n");
    }
  }
  return text;
}

class EveryPlanner : public testing::TestWithParam<std::string> {
 protected:
  const Planner& planner() const { return *FindPlanner(GetParam()); }
};

TEST_P(EveryPlanner, MakesValidPlansWithReasonsTwiceTheSame) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const ecg::Graph graph = GraphFor(planner(), RandomGraph(seed, 5 + static_cast<int>(seed)));
    // A third of the graphs have kernels that do not fit.
    const auto refuse = [&](const ecg::Graph&, const FusionBlock& fusion_block) {
      return seed % 3 == 0 && fusion_block.Members().size() > 3;
    };
    std::string first;
    // On half of the devices a value leaves the core's own cache.
    DeviceModel device;
    if (seed % 2 == 0) device.memory = {{"L2", 256, 1e10, false}, {"DRAM", 0, 1e9, true}};
    for (int turn = 0; turn < 2; ++turn) {
      AcceptingOracle oracle;
      oracle.refuse = refuse;
      auto plan = planner().Plan(graph, device, oracle, {});
      ASSERT_TRUE(plan.ok()) << "seed " << seed << ": " << plan.status();
      ASSERT_TRUE(CheckPlan(graph, *plan).ok()) << "seed " << seed << ": " << CheckPlan(graph, *plan);
      for (const Decision& decision : plan->decisions) {
        EXPECT_FALSE(decision.reason.empty())
            << "seed " << seed << ": " << decision.producer << " -> " << decision.consumer;
      }
      // A refused fusion block is in no plan; a single operator is not asked about.
      for (const FusionBlock& fusion_block : plan->fusion_blocks) {
        EXPECT_FALSE(fusion_block.Members().size() > 1 && refuse(graph, fusion_block)) << "seed " << seed;
      }
      const std::string all = Everything(graph, *plan);
      if (turn == 0) first = all;
      EXPECT_EQ(all, first) << "seed " << seed;
    }
  }
}

TEST_P(EveryPlanner, EdgesBetweenBlocksHaveADecision) {
  if (GetParam() == "none") GTEST_SKIP() << "it decides nothing";
  for (unsigned seed = 100; seed < 120; ++seed) {
    const ecg::Graph graph = GraphFor(planner(), RandomGraph(seed, 40));
    AcceptingOracle oracle;
    auto plan = planner().Plan(graph, DeviceModel(), oracle, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::set<std::pair<ecg::NodeId, ecg::NodeId>> decided;
    for (const Decision& decision : plan->decisions) decided.emplace(decision.producer, decision.consumer);
    for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
      for (ecg::ValueId v : graph.node(id).inputs) {
        const ecg::NodeId producer = v == ecg::kNone ? ecg::kNone : graph.value(v).producer;
        if (producer != ecg::kNone) EXPECT_TRUE(decided.count({producer, id})) << producer << " -> " << id;
      }
    }
  }
}

TEST_P(EveryPlanner, PlansEmptyGraphsAndSingleOperators) {
  AcceptingOracle oracle;
  auto empty = ecg::Parse("graph g(%x: f32[8]) { return %x }");
  auto plan = planner().Plan(*empty, DeviceModel(), oracle, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->fusion_blocks.empty());
  auto one = ecg::Parse("graph g(%x: f32[8]) {\n %a: f32[8] = Abs(%x)\n return %a\n}");
  plan = planner().Plan(*one, DeviceModel(), oracle, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->fusion_blocks.size(), 1u);
}

// Chains of layers of which no two are alike.
ecg::Graph DistinctLayers(int nodes) {
  std::string text = "graph g(%x: f32[32, 64]) {\n", last = "%x", returned;
  absl::StrAppend(&text, "  %axis: i64[1] = const {1}\n");
  for (int n = 0, layer = 0; n < nodes; n += 8, ++layer) {
    const std::string wide = absl::StrCat("f32[32, ", 64 + layer, "]"), l = absl::StrCat(layer);
    absl::StrAppend(&text, "  %w", l, ": f32[64, ", 64 + layer, "] = const #0000000000000001\n  %u", l, ": f32[",
                    64 + layer, ", 64] = const #0000000000000002\n");
    absl::StrAppend(&text, "  %p", l, ": ", wide, " = MatMul(", last, ", %w", l, ")\n");
    absl::StrAppend(&text, "  %e", l, ": ", wide, " = Exp(%p", l, ")\n");
    absl::StrAppend(&text, "  %m", l, ": f32[32, 1] = ReduceMean(%e", l, ", %axis)\n");
    absl::StrAppend(&text, "  %d", l, ": ", wide, " = Div(%e", l, ", %m", l, ")\n");
    absl::StrAppend(&text, "  %t", l, ": ", wide, " = Tanh(%d", l, ")\n");
    absl::StrAppend(&text, "  %q", l, ": f32[32, 64] = MatMul(%t", l, ", %u", l, ")\n");
    absl::StrAppend(&text, "  %a", l, ": f32[32, 64] = Add(%q", l, ", ", last, ")\n");
    absl::StrAppend(&text, "  %r", l, ": f32[32, 64] = Relu(%a", l, ")\n");
    last = absl::StrCat("%r", layer);
  }
  auto graph = ecg::Parse(absl::StrCat(text, "  return ", last, "\n}"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

// Scheduling a kernel is what planning spends its time on: at about a millisecond each, so many keep 10,000 operators
// under ten seconds.
TEST_P(EveryPlanner, AsksForFewSchedulesOfTenThousandOperators) {
  const ecg::Graph graph = GraphFor(planner(), DistinctLayers(10000));
  AcceptingOracle oracle;
  auto plan = planner().Plan(graph, DeviceModel(), oracle, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(CheckPlan(graph, *plan).ok()) << CheckPlan(graph, *plan);
  EXPECT_LT(oracle.distinct_fits, 3 * 10000) << "for " << graph.nodes().size() << " operators";
}

TEST_P(EveryPlanner, StopsSoonWhenCancelled) {
  if (GetParam() == "none") GTEST_SKIP() << "it has nothing to do";
  const ecg::Graph graph = GraphFor(planner(), DistinctLayers(800));
  AcceptingOracle all;
  ASSERT_TRUE(planner().Plan(graph, DeviceModel(), all, {}).ok());
  for (const int64_t after : {int64_t{0}, all.distinct_fits / 4, all.distinct_fits / 2}) {
    AcceptingOracle oracle;
    PlanOptions options;
    options.cancelled = [&] { return oracle.distinct_fits >= after; };
    EXPECT_EQ(planner().Plan(graph, DeviceModel(), oracle, options).status().code(), absl::StatusCode::kCancelled);
    EXPECT_LE(oracle.distinct_fits, after + 150) << "of " << all.distinct_fits;
  }
}

INSTANTIATE_TEST_SUITE_P(Planners, EveryPlanner, testing::ValuesIn(PlannerNames()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace fusion
