#include "compiler/plan/planners/graph_turbo/lowering/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "compiler/analysis/interpret.h"
#include "compiler/plan/planners/graph_turbo/lowering/run_program.h"
#include "compiler/plan/planners/graph_turbo/lowering/variants.h"
#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"
#include "runtime/base/random_inputs.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/testing/small_machine.h"
#include "runtime/verdict/compare.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::HasSubstr;

// One cluster of 4 cores. LB 4 KB, GB 24 KB.
dsa::Machine FourCores(double local_bytes = 4096) {
  dsa::Machine machine = dsa::SmallMachine();
  machine.clusters = 1;
  machine.groups[0].cores = 4;
  machine.groups[0].local_bytes = dsa::Known(local_bytes);
  machine.global_bytes = dsa::Known(24 << 10);
  machine.ddr_bytes = dsa::Known(16 << 20);
  return machine;
}

Cluster ClusterOf(const dsa::Machine& machine) {
  Cluster cluster;
  cluster.cores = machine.cores();
  cluster.local_bytes = machine.GroupOf(0).local_bytes.value;
  cluster.global_bytes = machine.global_bytes.value;
  return cluster;
}

// Lowers every variant of the graph, lets the simulator check it, and compares its numbers with the interpreter's.
// With `one_layer` all nodes are one layer.
void ExpectNumbers(const std::string& text, const dsa::Machine& machine,
                   const std::vector<std::string>& variants = VariantNames(), bool one_layer = false) {
  const auto graph = ecg::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto layers = LayersOf(*graph);
  ASSERT_TRUE(layers.ok());
  if (one_layer) {
    layers->assign(1, std::vector<ecg::NodeId>(graph->nodes().size()));
    std::iota(layers->front().begin(), layers->front().end(), 0);
  }
  const auto ops = MakeOpGraph(*graph, *layers, {4});
  ASSERT_TRUE(ops.ok()) << ops.status().message();
  std::vector<fusion::Tensor> inputs;
  for (const ecg::ValueId id : graph->inputs()) {
    const ecg::ValueType& type = graph->value(id).type;
    inputs.push_back(RandomTensor(type.dtype, type.shape, DeriveSeed(3, inputs.size()), 5));
  }
  const auto expected = ecg::Interpret(*graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  for (const std::string& variant : variants) {
    const auto lowered = LowerVariant(*ops, variant, ClusterOf(machine), machine, DType::kF32);
    ASSERT_TRUE(lowered.ok()) << variant << ": " << lowered.status().message();
    const auto run = RunProgram(*graph, *ops, *lowered, machine, inputs);
    ASSERT_TRUE(run.ok()) << variant << ": " << run.status().message();
    for (size_t o = 0; o < expected->size(); ++o) {
      const auto comparison = CompareTensors(run->outputs[o], (*expected)[o]);
      ASSERT_TRUE(comparison.ok());
      EXPECT_TRUE(comparison->ok()) << variant << ": output " << o << " differs by " << comparison->max_rel_err;
    }
    EXPECT_GT(run->timing.cycles, 0);
  }
}

TEST(LowerToProgram, AStraightLineOfConvolutionsWithPaddingAndStrides) {
  ExpectNumbers(R"(graph g(%x: f32[4, 3, 12, 12]) {
    %w1: f32[8, 3, 3, 3] = const #3d0000003d000000
    %b1: f32[8] = const #3d0000003e000000
    %w2: f32[6, 8, 3, 3] = const #3d0000003f000000
    %a: f32[4, 8, 12, 12] = Conv(%x, %w1, %b1) {pads = ints[1, 1, 1, 1]}
    %r: f32[4, 8, 12, 12] = Relu(%a)
    %c: f32[4, 6, 6, 6] = Conv(%r, %w2) {pads = ints[1, 1, 1, 1], strides = ints[2, 2]}
    return %c
  })",
                FourCores());
}

// Negative indices are counted from the end by an expression of the layer, whose elements are addresses of the next.
TEST(LowerToProgram, AddressesThatTheLayerComputes) {
  ExpectNumbers(R"(graph g(%x: f32[12, 16], %i: i64[12, 9]) {
    %e: f32[12, 9] = GatherElements(%x, %i) {axis = 1}
    %y: f32[12, 9] = Relu(%e)
    return %y
  })",
                FourCores());
}

TEST(LowerToProgram, ADiamondWithAnIdentity) {
  ExpectNumbers(R"(graph g(%x: f32[2, 4, 8, 8]) {
    %w1: f32[4, 4, 1, 1] = const #3d0000003d000000
    %w2: f32[4, 4, 3, 3] = const #3d0000003e000000
    %w3: f32[4, 4, 1, 1] = const #3d0000003f000000
    %e: f32[2, 4, 8, 8] = Conv(%x, %w1)
    %a: f32[2, 4, 8, 8] = Conv(%e, %w2) {pads = ints[1, 1, 1, 1]}
    %b: f32[2, 4, 8, 8] = Conv(%a, %w3)
    %s: f32[2, 4, 8, 8] = Add(%b, %e)
    %y: f32[2, 4, 8, 8] = Relu(%s)
    return %y
  })",
                FourCores());
}

TEST(LowerToProgram, ABranchThatConcatenates) {
  ExpectNumbers(R"(graph g(%x: f32[2, 4, 6, 6], %z: f32[2, 2, 6, 6]) {
    %w1: f32[3, 4, 1, 1] = const #3d0000003d000000
    %w2: f32[5, 2, 3, 3] = const #3d0000003e000000
    %w3: f32[4, 8, 1, 1] = const #3d0000003f000000
    %a: f32[2, 3, 6, 6] = Conv(%x, %w1)
    %b: f32[2, 5, 6, 6] = Conv(%z, %w2) {pads = ints[1, 1, 1, 1]}
    %c: f32[2, 8, 6, 6] = Concat(%a, %b) {axis = 1}
    %y: f32[2, 4, 6, 6] = Conv(%c, %w3)
    return %y
  })",
                FourCores());
}

// ShuffleNet's halves: a layer with two outputs.
TEST(LowerToProgram, AShuffleThatIsSplit) {
  ExpectNumbers(R"(graph g(%x: f32[2, 4, 6, 6], %z: f32[2, 4, 6, 6]) {
    %w1: f32[4, 4, 1, 1] = const #3d0000003d000000
    %w2: f32[4, 4, 3, 3] = const #3d0000003e000000
    %w3: f32[3, 8, 1, 1] = const #3d0000003f000000
    %apart: i64[5] = const {2, 2, 4, 6, 6}
    %joined: i64[4] = const {2, 8, 6, 6}
    %zero: i64[1] = const {0}
    %four: i64[1] = const {4}
    %eight: i64[1] = const {8}
    %one: i64[1] = const {1}
    %a: f32[2, 4, 6, 6] = Conv(%x, %w1)
    %c: f32[2, 8, 6, 6] = Concat(%a, %z) {axis = 1}
    %r: f32[2, 2, 4, 6, 6] = Reshape(%c, %apart)
    %t: f32[2, 4, 2, 6, 6] = Transpose(%r) {perm = ints[0, 2, 1, 3, 4]}
    %u: f32[2, 8, 6, 6] = Reshape(%t, %joined)
    %s: f32[2, 4, 6, 6] = Slice(%u, %zero, %four, %one)
    %h: f32[2, 4, 6, 6] = Slice(%u, %four, %eight, %one)
    %d: f32[2, 4, 6, 6] = Conv(%h, %w2) {pads = ints[1, 1, 1, 1]}
    %e: f32[2, 8, 6, 6] = Concat(%s, %d) {axis = 1}
    %y: f32[2, 3, 6, 6] = Conv(%e, %w3)
    return %y
  })",
                FourCores());
}

TEST(LowerToProgram, DepthwiseAndPooling) {
  ExpectNumbers(R"(graph g(%x: f32[2, 6, 9, 9]) {
    %w: f32[6, 1, 3, 3] = const #3d0000003d000000
    %a: f32[2, 6, 9, 9] = Conv(%x, %w) {pads = ints[1, 1, 1, 1], group = 6}
    %p: f32[2, 6, 4, 4] = MaxPool(%a) {kernel_shape = ints[3, 3], strides = ints[2, 2]}
    return %p
  })",
                FourCores());
}

TEST(LowerToProgram, AttentionWithANormAndASoftmax) {
  ExpectNumbers(R"(graph g(%x: f32[2, 10, 16]) {
    %q: f32[16, 16] = const #3d0000003d000000
    %k: f32[16, 16] = const #3d0000003e000000
    %g: f32[16] = const #3d0000003f000000
    %a: f32[2, 10, 16] = MatMul(%x, %q)
    %b: f32[2, 10, 16] = MatMul(%x, %k)
    %t: f32[2, 16, 10] = Transpose(%b) {perm = ints[0, 2, 1]}
    %s: f32[2, 10, 10] = MatMul(%a, %t)
    %p: f32[2, 10, 10] = Softmax(%s) {axis = -1}
    %v: f32[2, 10, 16] = MatMul(%p, %x)
    %r: f32[2, 10, 16] = Add(%v, %x)
    %n: f32[2, 10, 16] = LayerNormalization(%r, %g)
    return %n
  })",
                FourCores());
}

TEST(LowerToProgram, ALookupGathersFromDdr) {
  ExpectNumbers(R"(graph g(%ids: i64[2, 6]) {
    %table: f32[400, 16] = const #3d0000003d000000
    %w: f32[16, 8] = const #3d0000003e000000
    %e: f32[2, 6, 16] = Gather(%table, %ids) {axis = 0}
    %y: f32[2, 6, 8] = MatMul(%e, %w)
    return %y
  })",
                FourCores());
}

TEST(LowerToProgram, LongSumsAreTakenInParts) {
  // A row of 2048 elements takes 8 KB, twice an LB, and the weights are larger than the GB.
  ExpectNumbers(R"(graph g(%x: f32[3, 2048]) {
    %w: f32[2048, 6] = const #3d0000003d000000
    %b: f32[6] = const #3d0000003e000000
    %p: f32[3, 6] = MatMul(%x, %w)
    %a: f32[3, 6] = Add(%p, %b)
    %y: f32[3, 6] = Relu(%a)
    return %y
  })",
                FourCores());
}

// The loads from DDR of a program.
struct Loads {
  int count = 0;
  double bytes = 0;
};
Loads LoadsOf(const std::string& text, const std::string& variant, const dsa::Machine& machine) {
  const auto graph = ecg::Parse(text);
  const auto ops = MakeOpGraph(*graph, *LayersOf(*graph), {4});
  const auto lowered = LowerVariant(*ops, variant, ClusterOf(machine), machine, DType::kF32);
  EXPECT_TRUE(lowered.ok()) << lowered.status().message();
  Loads loads;
  for (size_t i = 0; lowered.ok() && i < lowered->workload.size(); ++i) {
    const dsa::Workload::Task& task = lowered->workload.task(i);
    if (task.kind != dsa::Kind::kLoad) continue;
    ++loads.count;
    loads.bytes += task.amount;
  }
  return loads;
}

// The weight takes more than half of the GB and does not stay there, and each core needs other columns of it.
TEST(LowerToProgram, AStreamBringsSeveralTilesAtOnce) {
  const std::string text = R"(graph g(%x: f32[8, 128]) {
    %w: f32[128, 80] = const #3d0000003d000000
    %y: f32[8, 80] = MatMul(%x, %w)
    return %y
  })";
  dsa::Machine machine = FourCores();
  machine.global_bytes = dsa::Known(64 << 10);
  machine.dma_startup_cycles = dsa::Known(40);  // panels of 8 * 40 * 8 bytes
  ExpectNumbers(text, machine);
  const Loads loads = LoadsOf(text, "l1", machine);
  EXPECT_EQ(loads.bytes, 8 * 128 * 4 + 128 * 80 * 4);
  EXPECT_LE(loads.count, 30);
}

// An operand that leaves the LBs for DDR to make room for its own reader comes back through the GB, once.
TEST(LowerToProgram, ASpilledOperandIsReadOnce) {
  const std::string text = R"(graph g(%x: f32[8, 128]) {
    %w1: f32[128, 128] = const #3d0000003d000000
    %w2: f32[128, 256] = const #3d0000003e000000
    %a: f32[8, 128] = MatMul(%x, %w1)
    %b: f32[8, 256] = MatMul(%a, %w2)
    return %b
  })";
  dsa::Machine machine = FourCores();
  machine.global_bytes = dsa::Known(256 << 10);
  machine.dma_startup_cycles = dsa::Known(40);
  ExpectNumbers(text, machine);
  const Loads loads = LoadsOf(text, "astitch_like", machine);
  EXPECT_EQ(loads.bytes, 4 * (8 * 128 + 128 * 128 + 8 * 128 + 128 * 256));
  EXPECT_LE(loads.count, 32);
}

// Lowers the steps and lets the simulator check the program.
void ExpectLegal(const OpGraph& graph, const std::vector<Step>& steps, const dsa::Machine& machine,
                 const LowerOptions& options) {
  const auto lowered = LowerToProgram(graph, steps, machine, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const absl::Status operands = dsa::CheckOperands(machine, lowered->program);
  ASSERT_TRUE(operands.ok()) << operands.message();
  const absl::Status accesses = dsa::CheckAccesses(machine, lowered->program);
  EXPECT_TRUE(accesses.ok()) << accesses.message();
}

// A part of a concatenation needs nothing of the other tensor.
TEST(LowerToProgram, AnInstanceThatReadsSomeInputsOnly) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[4, 8], %z: f32[4, 8]) {
    %a: f32[4, 8] = Relu(%x)
    %b: f32[4, 8] = Relu(%z)
    %c: f32[8, 8] = Concat(%a, %b) {axis = 0}
    return %c
  })");
  const Region half = WholeRegion({4, 8}), below = {false, {{4, 8}, {0, 8}}};
  ExpectLegal(graph, {{0, {half}, {{}}}, {2, {half}, {{0}, {}}}, {1, {half}, {{}}}, {2, {below}, {{}, {2}}}},
              FourCores(), {DType::kF32});
}

// The first row of %a leaves the GB for DDR while %c is there; the second is in the GB.
TEST(LowerToProgram, PiecesOfTwoLevels) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[2, 1024], %z: f32[1, 5120]) {
    %w: f32[5120, 2] = const #3d0000003d000000
    %a: f32[2, 1024] = Relu(%x)
    %c: f32[1, 5120] = Relu(%z)
    %d: f32[1, 2] = MatMul(%c, %w)
    %e: f32[2, 1024] = Exp(%a)
    return %e, %d
  })");
  const auto row = [](int64_t r) { return Region{false, {{r, r + 1}, {0, 1024}}}; };
  LowerOptions options;
  options.dtype = DType::kF32;
  options.results = BufferScope::kGlobal;
  const std::vector<Step> steps = {{0, {row(0)}, {{}}},
                                   {1, {WholeRegion({1, 5120})}, {{}}},
                                   {2, {WholeRegion({1, 2})}, {{1}, {}}},
                                   {0, {row(1)}, {{}}},
                                   {3, {WholeRegion({2, 1024})}, {{0, 3}}}};
  ExpectLegal(graph, steps, FourCores(), options);
}

TEST(LowerToProgram, WhatLivesLongMakesRoom) {
  // %e is read by the first and the last layer, and four tensors of 8 KB do not fit 16 KB of LBs.
  const std::string text = R"(graph g(%x: f32[2, 4, 16, 16]) {
    %w1: f32[4, 4, 1, 1] = const #3d0000003d000000
    %w2: f32[8, 4, 1, 1] = const #3d0000003e000000
    %w3: f32[4, 8, 1, 1] = const #3d0000003f000000
    %e: f32[2, 4, 16, 16] = Conv(%x, %w1)
    %a: f32[2, 8, 16, 16] = Conv(%e, %w2)
    %b: f32[2, 4, 16, 16] = Conv(%a, %w3)
    %s: f32[2, 4, 16, 16] = Add(%b, %e)
    return %s
  })";
  ExpectNumbers(text, FourCores());
  const auto graph = ecg::Parse(text);
  const auto ops = MakeOpGraph(*graph, *LayersOf(*graph), {4});
  const dsa::Machine machine = FourCores();
  const auto moves = [&](const std::string& variant) {
    const auto lowered = LowerVariant(*ops, variant, ClusterOf(machine), machine, DType::kF32);
    return dsa::TimeProgram(machine, lowered->program);
  };
  // Only the results go to DDR where the GB takes what the LBs have no room for.
  EXPECT_EQ(moves("l1").ddr_written_bytes, 2 * 4 * 256 * 4);
  EXPECT_GT(moves("astitch_like").ddr_written_bytes, 2 * 4 * 256 * 4);
  EXPECT_GT(moves("tvm_like").ddr_written_bytes, moves("astitch_like").ddr_written_bytes - 1);
}

TEST(LowerToProgram, UsesEachKindOfInstruction) {
  const auto graph = ecg::Parse(R"(graph g(%x: f32[1, 4, 8, 8]) {
    %w1: f32[4, 4, 3, 3] = const #3d0000003d000000
    %w2: f32[8, 4, 3, 3] = const #3d0000003e000000
    %a: f32[1, 4, 8, 8] = Conv(%x, %w1) {pads = ints[1, 1, 1, 1]}
    %r: f32[1, 4, 8, 8] = Relu(%a)
    %c: f32[1, 8, 8, 8] = Conv(%r, %w2) {pads = ints[1, 1, 1, 1]}
    return %c
  })");
  const auto ops = MakeOpGraph(*graph, *LayersOf(*graph), {4});
  const dsa::Machine machine = FourCores();
  std::set<dsa::Kind> kinds;
  for (const char* variant : {"l1", "graph_turbo"}) {
    const auto lowered = LowerVariant(*ops, variant, ClusterOf(machine), machine, DType::kF32);
    ASSERT_TRUE(lowered.ok()) << lowered.status().message();
    for (const dsa::Instruction& instruction : lowered->program.instructions) kinds.insert(instruction.kind);
    // The text says all.
    const auto parsed = dsa::Parse(dsa::Print(lowered->program));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(dsa::Print(*parsed), dsa::Print(lowered->program));
  }
  EXPECT_EQ(kinds.size(), 7u);
}

TEST(LowerToProgram, MostDependencesAreNeeded) {
  const auto graph = ecg::Parse(R"(graph g(%x: f32[2, 4, 6, 6]) {
    %w1: f32[4, 4, 3, 3] = const #3d0000003d000000
    %a: f32[2, 4, 6, 6] = Conv(%x, %w1) {pads = ints[1, 1, 1, 1]}
    %r: f32[2, 4, 6, 6] = Relu(%a)
    return %r
  })");
  const auto ops = MakeOpGraph(*graph, *LayersOf(*graph), {4});
  const dsa::Machine machine = FourCores();
  const auto lowered = LowerVariant(*ops, "graph_turbo", ClusterOf(machine), machine, DType::kF32);
  ASSERT_TRUE(lowered.ok());
  ASSERT_TRUE(dsa::CheckOperands(machine, lowered->program).ok());
  ASSERT_TRUE(dsa::CheckAccesses(machine, lowered->program).ok());
  int refused = 0, total = 0;
  for (size_t i = 0; i < lowered->program.instructions.size(); ++i) {
    if (lowered->program.instructions[i].after.empty()) continue;
    dsa::Program without = lowered->program;
    without.instructions[i].after.clear();
    ++total;
    refused += !dsa::CheckAccesses(machine, without).ok();
  }
  EXPECT_GT(total, 10);
  // A few follow from others, because an instruction waits for the last one of each engine that touched a block.
  EXPECT_GE(refused, total * 3 / 4);
  EXPECT_GT(refused, 0);
}

TEST(LowerToProgram, SaysWhatItCannotDo) {
  const auto graph = ecg::Parse(R"(graph g(%x: f32[1, 4]) {
    %r: f32[1, 4] = Relu(%x)
    return %r
  })");
  const auto ops = MakeOpGraph(*graph, *LayersOf(*graph), {4});
  dsa::Machine machine = FourCores();
  machine.groups[0].units = {"vme"};
  EXPECT_THAT(std::string(LowerVariant(*ops, "l1", ClusterOf(machine), machine, DType::kF32).status().message()),
              HasSubstr("cores without an LB, a matrix or a vector unit"));
  const auto tiny = LowerVariant(*ops, "l1", ClusterOf(FourCores()), FourCores(32), DType::kF32).status();
  EXPECT_EQ(tiny.code(), absl::StatusCode::kResourceExhausted) << tiny.message();
}

TEST(OneCluster, HasItsShareOfDdr) {
  const dsa::Machine one = OneCluster(dsa::SmallMachine());
  EXPECT_EQ(one.clusters, 1);
  EXPECT_EQ(one.ddr_bytes_per_s.value, dsa::SmallMachine().ddr_bytes_per_s.value / 2);
}

TEST(LowerToProgram, ATileMayNeedSomeResultsOfASegmentOnly) {
  // Both maps stand in front of the product and are one segment; a core's part of the concatenation needs one of them.
  ExpectNumbers(R"(graph g(%a: f32[4, 2], %b: f32[4, 2], %c: f32[4, 2], %w: f32[2, 2]) {
    %la: f32[4, 2] = Relu(%a)
    %lb: f32[4, 2] = Sigmoid(%b)
    %p: f32[4, 2] = MatMul(%c, %w)
    %t: f32[4, 2] = Tanh(%p)
    %y: f32[12, 2] = Concat(%la, %lb, %t) {axis = 0}
    return %y
  })",
                FourCores(), VariantNames(), /*one_layer=*/true);
}

}  // namespace
}  // namespace fusion::graph_turbo
