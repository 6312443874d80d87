#include "compiler/plan/planners/souffle/souffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ecg::Graph Parsed(const std::string& text) {
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

std::vector<std::string> Names(const ecg::Graph& graph, const FusionPlan& plan) {
  std::vector<std::string> fusion_blocks;
  for (const FusionBlock& fusion_block : plan.fusion_blocks) {
    std::vector<std::string> names;
    for (const ecg::NodeId id : fusion_block.nodes) names.push_back(graph.value(graph.node(id).outputs[0]).name);
    fusion_blocks.push_back(absl::StrJoin(names, "+"));
  }
  return fusion_blocks;
}

// Each kernel costs 10 and 1 for each node; products have the grid and the resources that are given.
class FakeOracle : public FusionOracle {
 public:
  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
    if (refuses && refuses(fusion_block)) return absl::FailedPreconditionError("too large");
    FusionBlockAccount account;
    account.estimate_ns = EstimateNs(graph, fusion_block.nodes);
    account.work_groups = grid(fusion_block.nodes[0]);
    account.occupancy = Occupancy{{64, registers(fusion_block.nodes[0]), 8192}, 4, 1, "registers"};
    return account;
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph&, const std::vector<FusionComparison>&,
                                        const std::vector<FusionComparison>&) override {
    return absl::InternalError("souffle measures nothing");
  }
  double EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) override {
    return 10 + static_cast<double>(nodes.size()) + (more ? more(nodes) : 0);
  }
  std::function<bool(const FusionBlock&)> refuses;
  std::function<double(const std::vector<ecg::NodeId>&)> more;
  std::function<int64_t(ecg::NodeId)> grid = [](ecg::NodeId) { return 1; };
  std::function<int(ecg::NodeId)> registers = [](ecg::NodeId) { return 32; };
};

// Four products, each with arithmetic behind it.
std::string Products(int count) {
  std::string text = "graph g(%v0: f32[64, 64], %w: f32[64, 64]) {\n";
  for (int p = 0; p < count; ++p) {
    absl::StrAppend(&text, "  %p", p, ": f32[64, 64] = MatMul(%v", p, ", %w)\n");
    absl::StrAppend(&text, "  %v", p + 1, ": f32[64, 64] = Relu(%p", p, ")\n");
  }
  return absl::StrCat(text, "  return %v", count, "\n}");
}

DeviceModel Gpu() {
  DeviceModel device;
  device.kind = "cuda";
  device.parallel_units = 10;
  device.work_group_size = 64;
  device.launch_s = 4e-6;
  device.barrier_s = 2e-6;
  device.unit_limits = {65536, 65536, 0, 2048, 32};
  device.memory = {{"shared", 48 << 10, 1e11, false}, {"DRAM", 0, 1e10, true}};
  return device;
}

FusionPlan Plan(const Planner* planner, const ecg::Graph& graph, FakeOracle& oracle, const DeviceModel& device = Gpu(),
                const PlanOptions& options = {}) {
  auto plan = planner->Plan(graph, device, oracle, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  const absl::Status valid = CheckPlan(graph, plan.value());
  EXPECT_TRUE(valid.ok()) << valid;
  return *std::move(plan);
}

TEST(SoufflePaper, OneSubprogramWhereAllWorkGroupsAreOnTheDeviceAtOnce) {
  const ecg::Graph graph = Parsed(Products(3));
  FakeOracle oracle;
  EXPECT_THAT(Names(graph, Plan(SoufflePaperPlanner(), graph, oracle)), ElementsAre("p0+v1+p1+v2+p2+v3"));
}

// C is 10 × 65536 registers. A work-group takes 64 × 32 = 2048 of them, so 320 work-groups are one too many.
TEST(SoufflePaper, MaxGridTimesMaxOccupancyBinds) {
  const ecg::Graph graph = Parsed(Products(3));
  FakeOracle oracle;
  const auto largest = [&](int64_t groups) {
    oracle.grid = [=](ecg::NodeId id) { return id == 2 ? groups : 1; };
    oracle.registers = [](ecg::NodeId) { return 32; };
  };
  largest(319);
  oracle.refuses = nullptr;
  // 319 × 8192 bytes of shared memory would be too much, too: 10 × 65536 bytes are 80 work-groups.
  EXPECT_THAT(Names(graph, Plan(SoufflePaperPlanner(), graph, oracle)), ElementsAre("p0+v1", "p1+v2", "p2+v3"));
  largest(79);
  EXPECT_EQ(Plan(SoufflePaperPlanner(), graph, oracle).fusion_blocks.size(), 1u);
  largest(80);
  const FusionPlan plan = Plan(SoufflePaperPlanner(), graph, oracle);
  EXPECT_THAT(Names(graph, plan), ElementsAre("p0+v1", "p1+v2", "p2+v3"));
  bool said = false;
  for (const Decision& decision : plan.decisions) {
    said |= decision.reason.find("max_grid 80 times 8192 bytes of shared memory is not below the device's 655360") !=
            std::string::npos;
  }
  EXPECT_TRUE(said);
}

// The largest grid and the largest occupancy need not be those of one expression.
TEST(SoufflePaper, GridAndOccupancyOfDifferentExpressionsCountTogether) {
  const ecg::Graph graph = Parsed(Products(2));
  FakeOracle oracle;
  oracle.grid = [](ecg::NodeId id) { return id == 0 ? 60 : 10; };
  oracle.registers = [](ecg::NodeId id) { return id == 0 ? 32 : 255; };
  EXPECT_EQ(Plan(SoufflePaperPlanner(), graph, oracle).fusion_blocks.size(), 2u) << "60 × 255 × 64 > 655360";
  oracle.registers = [](ecg::NodeId id) { return id == 0 ? 32 : 128; };
  EXPECT_EQ(Plan(SoufflePaperPlanner(), graph, oracle).fusion_blocks.size(), 1u) << "60 × 128 × 64 < 655360";
}

TEST(SoufflePaper, WhatCannotBeOneKernelIsDivided) {
  const ecg::Graph graph = Parsed(Products(4));
  FakeOracle oracle;
  oracle.refuses = [](const FusionBlock& fusion_block) { return fusion_block.nodes.size() > 4; };
  EXPECT_THAT(Names(graph, Plan(SoufflePaperPlanner(), graph, oracle)), ElementsAre("p0+v1+p1+v2", "p2+v3+p3+v4"));
  oracle.refuses = [](const FusionBlock& fusion_block) { return fusion_block.nodes.size() > 1; };
  EXPECT_EQ(Plan(SoufflePaperPlanner(), graph, oracle).fusion_blocks.size(), 8u);
}

// Operators that no product anchors are one element, however many they are.
TEST(SoufflePaper, AnElementOfThousandsOfOperatorsIsNoKernel) {
  std::string text = "graph g(%v0: f32[8]) {\n";
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&text, "  %v", i + 1, ": f32[8] = Relu(%v", i, ")\n");
  const ecg::Graph graph = Parsed(absl::StrCat(text, "  return %v3000\n}"));
  FakeOracle oracle;
  size_t longest = 0;
  oracle.refuses = [&](const FusionBlock& fusion_block) {
    longest = std::max(longest, fusion_block.nodes.size());
    return false;
  };
  EXPECT_LT(Plan(SoufflePaperPlanner(), graph, oracle).fusion_blocks.size(), 3000u);
  EXPECT_LE(longest, 128u);
}

// A product, and a norm of its rows: the reduction reads what many tasks make.
TEST(Souffle, ReductionsThatCrossTilesAskForABarrier) {
  const ecg::Graph graph = Parsed(R"(graph g(%x: f32[64, 64], %w: f32[64, 64]) {
    %p: f32[64, 64] = MatMul(%x, %w)
    %r: f32[64, 64] = Relu(%p)
    %s: f32[64, 64] = Softmax(%r) {axis = 1}
    return %s
  })");
  FakeOracle oracle;
  oracle.refuses = [](const FusionBlock& fusion_block) {
    // It fits only across a barrier in front of the softmax, with the Relu as the product's epilogue.
    if (fusion_block.nodes.size() < 3) return false;
    return fusion_block.inner.size() != 2 || fusion_block.inner[0].nearest != Scope::kLane ||
           fusion_block.inner[1].nearest != Scope::kDevice;
  };
  for (const Planner* planner : {SoufflePlanner(), SoufflePaperPlanner()}) {
    const FusionPlan plan = Plan(planner, graph, oracle);
    ASSERT_EQ(plan.fusion_blocks.size(), 1u) << planner->name();
    EXPECT_EQ(plan.fusion_blocks[0].inner[1].furthest, Scope::kDevice);
  }
}

TEST(Souffle, CutsWhereTheWholeRowCostsLeast) {
  const ecg::Graph graph = Parsed(Products(4));
  FakeOracle oracle;
  oracle.more = [](const std::vector<ecg::NodeId>& nodes) {
    // Kernels of more than two products are slow, and so is one of the two in the middle.
    return nodes.size() > 4 || (nodes.size() == 4 && nodes[0] == 2) ? 100.0 : 0.0;
  };
  const FusionPlan plan = Plan(SoufflePlanner(), graph, oracle);
  EXPECT_THAT(Names(graph, plan), ElementsAre("p0+v1+p1+v2", "p2+v3+p3+v4"));
  for (const Decision& decision : plan.decisions) {
    EXPECT_FALSE(decision.reason.empty());
    if (!decision.fused) EXPECT_THAT(decision.reason, HasSubstr("cut at MatMul"));
  }
}

TEST(Souffle, WhereFusingDoesNotPayElementsStayApart) {
  const ecg::Graph graph = Parsed(Products(4));
  FakeOracle oracle;
  oracle.more = [](const std::vector<ecg::NodeId>& nodes) { return nodes.size() > 2 ? 1000.0 : 0.0; };
  EXPECT_THAT(Names(graph, Plan(SoufflePlanner(), graph, oracle)), ElementsAre("p0+v1", "p1+v2", "p2+v3", "p3+v4"));
}

// q, k and v read one value and not each other: the paper's spatial reuse lets them share a kernel.
TEST(Souffle, ProductsOfOneValueMayShareAKernel) {
  const ecg::Graph graph = Parsed(R"(graph g(%x: f32[64, 64], %y: f32[64, 64], %w: f32[64, 64]) {
    %q: f32[64, 64] = MatMul(%x, %w)
    %k: f32[64, 64] = MatMul(%x, %w)
    %o: f32[64, 64] = MatMul(%y, %y)
    return %q, %k, %o
  })");
  FakeOracle oracle;
  EXPECT_THAT(Names(graph, Plan(SoufflePlanner(), graph, oracle)), ElementsAre("q+k", "o"))
      << "%o has nothing to do with the others";
}

// Without limits of occupancy a unit runs one task at a time, so that the rule binds at more tasks than units.
TEST(SoufflePaper, OnOtherDevicesTheUnitsAreTheLimit) {
  const ecg::Graph graph = Parsed(Products(2));
  DeviceModel device;
  device.parallel_units = 4;
  FakeOracle oracle;
  oracle.grid = [](ecg::NodeId) { return 4; };
  EXPECT_EQ(Plan(SoufflePaperPlanner(), graph, oracle, device).fusion_blocks.size(), 1u);
  oracle.grid = [](ecg::NodeId) { return 5; };
  EXPECT_EQ(Plan(SoufflePaperPlanner(), graph, oracle, device).fusion_blocks.size(), 2u);
}

TEST(Souffle, CancellingEndsIt) {
  const ecg::Graph graph = Parsed(Products(2));
  PlanOptions options;
  options.cancelled = [] { return true; };
  FakeOracle oracle;
  for (const Planner* planner : {SoufflePlanner(), SoufflePaperPlanner()}) {
    EXPECT_EQ(planner->Plan(graph, Gpu(), oracle, options).status().code(), absl::StatusCode::kCancelled);
  }
}

}  // namespace
}  // namespace fusion
