// The bytes that `power_fusion` counts are those that its kernels move, as their movement graphs say: within a
// hundredth, on processors and GPUs.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/cost/stored_devices.h"
#include "compiler/cost/typical_core.h"
#include "compiler/measure/fusion_oracle.h"
#include "compiler/movement/cost.h"
#include "compiler/plan/planners/power_fusion/merge_kernels.h"
#include "compiler/plan/planners/power_fusion/realised_bytes.h"
#include "compiler/simplify/passes.h"

namespace fusion {
namespace {

using power_fusion::MovedBytes;

struct Case {
  std::string name, graph;
};

const std::vector<Case>& Cases() {
  static const auto* const kCases = new std::vector<Case>{
      {"ConcatShuffleSplit", R"(graph g(%a: f32[1, 58, 28, 28], %b: f32[1, 58, 28, 28]) {
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
       })"},
      {"TransposesWithArithmetic", R"(graph g(%x: f32[64, 96]) {
         %t: f32[96, 64] = Transpose(%x) {perm = ints[1, 0]}
         %e: f32[96, 64] = Exp(%t)
         %u: f32[64, 96] = Transpose(%e) {perm = ints[1, 0]}
         %y: f32[64, 96] = Neg(%u)
         return %y
       })"},
      {"DepthwiseWithActivations", R"(graph g(%x: f32[1, 96, 28, 28]) {
         %d: f32[96, 1, 3, 3] = const #0000000000000002
         %e: f32[1, 96, 28, 28] = Relu(%x)
         %c: f32[1, 96, 28, 28] = Conv(%e, %d) {group = 96, pads = ints[1, 1, 1, 1]}
         %s: f32[1, 96, 28, 28] = Sigmoid(%c)
         %y: f32[1, 96, 28, 28] = Mul(%c, %s)
         return %y
       })"},
      {"AttentionWithCache",
       R"(graph g(%q: f32[12, 1, 64], %k: f32[12, 255, 64], %nk: f32[12, 1, 64], %v: f32[12, 255, 64], %nv: f32[12, 1, 64]) {
         %keys: f32[12, 256, 64] = Concat(%k, %nk) {axis = 1}
         %values: f32[12, 256, 64] = Concat(%v, %nv) {axis = 1}
         %t: f32[12, 64, 256] = Transpose(%keys) {perm = ints[0, 2, 1]}
         %scores: f32[12, 1, 256] = MatMul(%q, %t)
         %p: f32[12, 1, 256] = Softmax(%scores) {axis = 2}
         %y: f32[12, 1, 64] = MatMul(%p, %values)
         return %y, %keys, %values
       })"},
      {"LayerNorm", R"(graph g(%x: f32[128, 768], %g: f32[768], %b: f32[768]) {
         %y: f32[128, 768] = LayerNormalization(%x, %g, %b)
         return %y
       })"},
      {"Softmax", R"(graph g(%x: f32[256, 512]) {
         %y: f32[256, 512] = Softmax(%x) {axis = 1}
         return %y
       })"},
      {"ColumnSum", R"(graph g(%x: f32[512, 256]) {
         %axis: i64[1] = const {0}
         %e: f32[512, 256] = Exp(%x)
         %s: f32[1, 256] = ReduceSum(%e, %axis)
         %y: f32[1, 256] = Sqrt(%s)
         return %y
       })"},
      {"ColumnNorm", R"(graph g(%x: f32[512, 256]) {
         %axis: i64[1] = const {0}
         %s: f32[1, 256] = ReduceSum(%x, %axis)
         %y: f32[512, 256] = Div(%x, %s)
         return %y
       })"},
      {"SqueezeAndExcite", R"(graph g(%x: f32[1, 96, 28, 28]) {
         %a: f32[4, 96, 1, 1] = const #0000000000000001
         %b: f32[96, 4, 1, 1] = const #0000000000000002
         %m: f32[1, 96, 1, 1] = GlobalAveragePool(%x)
         %r: f32[1, 4, 1, 1] = Conv(%m, %a)
         %s: f32[1, 4, 1, 1] = Relu(%r)
         %e: f32[1, 96, 1, 1] = Conv(%s, %b)
         %g: f32[1, 96, 1, 1] = Sigmoid(%e)
         %y: f32[1, 96, 28, 28] = Mul(%x, %g)
         return %y
       })"},
      {"Embedding", R"(graph g(%i: i64[32], %p: f32[32, 64]) {
         %table: f32[30000, 64] = const #0000000000000001
         %e: f32[32, 64] = Gather(%table, %i) {axis = 0}
         %y: f32[32, 64] = Add(%e, %p)
         return %y
       })"},
  };
  return *kCases;
}

// All that a kernel moves beyond the scratch of its tasks.
double BytesOfKernel(const movement::Kernel& kernel, DeviceModel device) {
  double scratch = 0;
  for (const movement::Phase& phase : kernel.phases) {
    for (const int buffer : movement::AccessesOf(phase).written) {
      if (kernel.buffers[buffer].scope != Scope::kBlock) continue;
      scratch += 2 * static_cast<double>(movement::SizeBytes(kernel.buffers[buffer]) * phase.tasks());
    }
  }
  double bytes = -scratch;
  for (const double of_level : movement::BytesByLevel(kernel, device)) bytes += of_level;
  return bytes;
}

class GirBytes : public testing::TestWithParam<std::tuple<std::string, size_t>> {};

TEST_P(GirBytes, AreThoseOfTheKernel) {
  const auto& [target, number] = GetParam();
  const Case& one = Cases()[number];
  DeviceModel device = TypicalCore();
  if (target != "cpu") {
    auto stored = StoredDevice(target);
    ASSERT_TRUE(stored.ok()) << stored.status();
    device = *std::move(stored);
  }
  auto parsed = ecg::Parse(one.graph);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const ecg::Graph graph = simplify::OpenComposites(*parsed);
  ModelOracle model;
  CompileContext context;
  context.device = &device;
  context.oracle = &model;
  const ValueLayouts layouts;
  GraphFusionOracle oracle(context, 1);
  oracle.Start(&graph, &layouts);
  const DeviceModel typical = WithTypicalRates(device);
  auto operators = power_fusion::BasicOperatorsOf(graph, typical, {});
  ASSERT_TRUE(operators.ok()) << operators.status();
  auto plan = FindPlanner("power_fusion")->Plan(graph, device, oracle, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  power_fusion::TemplateSearch search(graph, *operators, typical);
  for (const FusionBlock& fusion_block : plan->fusion_blocks) {
    const auto kernel = oracle.Get(fusion_block);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const FusionBlockAccount account = oracle.Account(**kernel);
    const double moved = BytesOfKernel((*kernel)->kernel, typical);
    const MovedBytes counted = power_fusion::RealisedBytes(graph, *operators, fusion_block, account, typical);
    EXPECT_EQ(counted.phases, account.phases);
    EXPECT_NEAR(counted.Dram(typical), moved, 0.01 * moved) << PrintPlan(graph, *plan);
    // Where the schedule has the phases that the search planned, the search counted the same.
    const std::vector<ecg::ValueId> live = LiveOut(graph, fusion_block);
    const power_fusion::MergePlan planned = search.Fastest(fusion_block.nodes, {live.begin(), live.end()});
    const MovedBytes searched = power_fusion::BytesOf(planned.gir, typical);
    if (searched.phases == 1 && account.phases == 1) {
      EXPECT_NEAR(searched.Dram(typical), moved, 0.01 * moved) << power_fusion::Print(graph, planned.gir);
    }
  }
}

std::string NameOf(const testing::TestParamInfo<GirBytes::ParamType>& info) {
  const auto& [target, number] = info.param;
  return Cases()[number].name + (target == "cpu" ? "OnCpu" : "OnSm80");
}
INSTANTIATE_TEST_SUITE_P(Kernels, GirBytes,
                         testing::Combine(testing::Values("cpu", "cuda:sm_80"),
                                          testing::Range<size_t>(0, Cases().size())),
                         NameOf);

}  // namespace
}  // namespace fusion
