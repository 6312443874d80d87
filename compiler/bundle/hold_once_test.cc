#include "compiler/bundle/hold_once.h"

#include <gtest/gtest.h>

#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using testing::GraphMaker;
using V = ecg::ValueId;

// A graph with a table: one kernel gathers its rows, another multiplies by it.
struct Tied {
  Tied(int64_t gathered, int64_t multiplied) {
    table = g.Weight({4096, 64});
    g.Out(g.Op("Gather", {table, g.In({gathered}, DType::kI64)}));
    const V turned = g.Op("Transpose", {table}, {{"perm", std::vector<int64_t>{1, 0}}});
    g.Out(g.Op("MatMul", {g.In({multiplied, 64}), turned}));
  }
  std::vector<PlannedLaunch> Launches() const {
    std::vector<PlannedLaunch> launches;
    for (const std::vector<ecg::NodeId>& nodes : std::vector<std::vector<ecg::NodeId>>{{0}, {1, 2}}) {
      auto kernel =
          MakeFusionKernel(g.graph(), nodes, LiveOutOf(g.graph(), nodes), {}, testing::Avx512Device()).value();
      launches.push_back({std::move(kernel), {}, "", {}});
    }
    return launches;
  }
  std::vector<PlannedLaunch> Held(bool whatever_it_costs) const {
    std::vector<PlannedLaunch> launches = Launches();
    HoldOnce(g.graph(), testing::Avx512Device(), 1, whatever_it_costs, &launches);
    return launches;
  }
  GraphMaker g;
  V table = -1;
};

// Returns how each launch reads the table: "plain" or its packing.
std::vector<std::string> ReadsOf(const Tied& tied, const std::vector<PlannedLaunch>& launches) {
  std::vector<std::string> reads;
  for (const PlannedLaunch& launch : launches) {
    for (const KernelArg& arg : launch.fusion_kernel.args) {
      if (arg.kind != KernelArg::Kind::kConstant || arg.value != tied.table) continue;
      reads.push_back(arg.pack < 0 ? "plain" : PackingText(launch.fusion_kernel.kernel.packs[arg.pack]));
    }
  }
  return reads;
}

TEST(HoldOnce, AFewRowsAreGatheredFromTheProductsPanels) {
  const Tied tied(4, 512);
  const std::vector<PlannedLaunch> before = tied.Launches(), after = tied.Held(false);
  const std::vector<std::string> was = ReadsOf(tied, before), is = ReadsOf(tied, after);
  ASSERT_EQ(was.size(), 2u);
  EXPECT_EQ(was[0], "plain");
  EXPECT_NE(was[1], "plain");
  EXPECT_EQ(is, (std::vector<std::string>{was[1], was[1]}));
  EXPECT_NE(after[0].fusion_kernel.key, before[0].fusion_kernel.key);
  EXPECT_EQ(after[1].fusion_kernel.key, before[1].fusion_kernel.key);
}

// Gathers more rows than the table has, and the product has one row: gathering from panels would cost noticeable time.
TEST(HoldOnce, WhatCostsTimeIsForThoseWhoAskForIt) {
  const Tied tied(100000, 1);
  EXPECT_EQ(ReadsOf(tied, tied.Held(false)), ReadsOf(tied, tied.Launches()));
  std::vector<PlannedLaunch> launches = tied.Launches();
  const auto refused = HoldOnce(tied.g.graph(), testing::Avx512Device(), 1, false, &launches);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused.begin()->first, tied.g.graph().value(tied.table).constant->data());
  EXPECT_NE(refused.begin()->second.find("of the model's time, where 1% is allowed"), std::string::npos)
      << refused.begin()->second;
  const std::vector<std::string> small = ReadsOf(tied, tied.Held(true));
  ASSERT_EQ(small.size(), 2u);
  EXPECT_EQ(small[0], small[1]);
}

TEST(HoldOnce, WhatIsReturnedStaysAsItIs) {
  Tied tied(4, 512);
  tied.g.Out(tied.table);
  EXPECT_EQ(ReadsOf(tied, tied.Held(true)), ReadsOf(tied, tied.Launches()));
  std::vector<PlannedLaunch> launches = tied.Launches();
  const auto refused = HoldOnce(tied.g.graph(), testing::Avx512Device(), 1, true, &launches);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused.begin()->second, "the model returns it");
}

// A norm of the gathered rows reads them in passes of its own, whose sums run along the row.
TEST(HoldOnce, RowsAreGatheredForANormToo) {
  Tied tied(4, 512);
  const V gathered = tied.g.Op("Gather", {tied.table, tied.g.In({4}, DType::kI64)});
  tied.g.Out(tied.g.Op("LayerNormalization", {gathered, tied.g.Weight({64})}));
  std::vector<PlannedLaunch> launches = tied.Launches();
  const ecg::Graph& graph = tied.g.graph();
  auto norm =
      MakeFusionKernel(graph, {3, 4}, LiveOutOf(graph, std::vector<ecg::NodeId>{3, 4}), {}, testing::Avx512Device())
          .value();
  bool rows = false;
  for (const movement::Phase& phase : norm.kernel.phases) {
    movement::VisitSteps(phase, [&](const movement::Step& step) { rows = rows || step.Is<movement::RowReduction>(); });
  }
  ASSERT_TRUE(rows) << movement::Print(norm.kernel);
  launches.push_back({std::move(norm), {}, "", {}});
  HoldOnce(graph, testing::Avx512Device(), 1, false, &launches);
  const std::vector<std::string> reads = ReadsOf(tied, launches);
  ASSERT_EQ(reads.size(), 3u);
  EXPECT_NE(reads[0], "plain");
  EXPECT_EQ(reads, std::vector<std::string>(3, reads[0]));
}

}  // namespace
}  // namespace fusion
