// Stages that hand nothing to each other compute the same as phases that run beside each other in one launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;
using G = GraphMaker;
using V = ecg::ValueId;

std::vector<Directive> Beside() { return {{ecg::kNone, "form", "beside"}}; }

// Devices of work-groups of several work-items, of single ones, and with tensor cores' group sizes.
std::vector<DeviceModel> Devices() {
  std::vector<DeviceModel> devices;
  for (DeviceModel device : {OpenClTestDevice(4, 32), OpenClTestDevice(8, 1), CudaTestDevice(64), CudaTestDevice(32)}) {
    device.parallel_units = 4;
    device.memory[0].size_bytes = 48 << 10;
    if (CanRun(device).ok()) devices.push_back(device);
  }
  return devices;
}

std::vector<RunOptions> Options() {
  std::vector<RunOptions> options;
  for (const DeviceModel& device : Devices()) options.emplace_back(RunOptions{device}).directives = Beside();
  return options;
}

// Three projections of different widths, each with its bias.
FusionCase Projections() {
  G g;
  const V x = g.In({40, 48});
  for (const int64_t width : {64, 32, 24}) {
    g.Out(g.Op("Add", {g.Op("MatMul", {x, g.Weight({48, width})}), g.Weight({width})}));
  }
  return {"projections", g};
}

// Stages in scratch with barriers of their group, a map, a sum of columns and a window.
FusionCase UnlikeParts() {
  G g;
  const V x = g.In({12, 33});
  g.Out(g.Op("Softmax", {g.Op("Mul", {x, g.Scalar(0.5)})}, {{"axis", int64_t{-1}}}));
  g.Out(g.Op("Exp", {g.In({7, 5})}));
  g.Out(g.Op("ReduceSum", {g.In({9, 65}), g.Ints({0})}));
  g.Out(g.Op("MaxPool", {g.In({1, 3, 10, 11})}, {{"kernel_shape", std::vector<int64_t>{3, 2}}}));
  return {"unlike parts", g};
}

// Two heads of attention of different lengths: products in tasks.
FusionCase Attentions() {
  G g;
  for (const int64_t keys : {24, 16}) {
    const V scores = g.Op("MatMul", {g.In({2, 8, 16}), g.In({2, 16, keys})});
    g.Out(g.Op("MatMul", {g.Op("Softmax", {scores}, {{"axis", int64_t{-1}}}), g.In({2, keys, 16})}));
  }
  return {"attentions", g};
}

// One part reads what another one reads, at other places, and an empty tensor has no task.
FusionCase SharedOperand() {
  G g;
  const V x = g.In({16, 24});
  g.Out(g.Op("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}}));
  g.Out(g.Op("ReduceMax", {x, g.Ints({1})}));
  g.Out(g.Op("Neg", {g.In({0, 24})}));
  g.Out(g.Op("Relu", {x}));
  return {"shared operand", g};
}

// Between two and five parts, each a short chain.
FusionCase DrawParts(uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  const auto draw = [&](std::vector<int64_t> from) { return from[random() % from.size()]; };
  G g;
  const int64_t shared_rows = draw({3, 16, 40}), shared_columns = draw({1, 8, 33});
  const V shared = g.In({shared_rows, shared_columns});
  std::string name = absl::StrCat("parts ", seed, ":");
  for (int64_t parts = draw({2, 2, 3, 5}); parts > 0; --parts) {
    int64_t rows = shared_rows, columns = shared_columns;
    V x = shared;
    if (draw({0, 1}) == 1) {
      rows = draw({1, 4, 17, 64}), columns = draw({2, 16, 31, 130});
      x = g.In({rows, columns});
    }
    for (int64_t steps = draw({1, 2, 3}); steps > 0; --steps) {
      const int64_t kind = draw({0, 1, 2, 3, 4});
      absl::StrAppend(&name, " ", kind);
      if (kind == 0) x = g.Op("Tanh", {x});
      if (kind == 1) x = g.Op("Softmax", {x}, {{"axis", int64_t{-1}}});
      if (kind == 2) {
        const int64_t results = draw({1, 8, 40});
        x = g.Op("MatMul", {x, g.Weight({columns, results})});
        columns = results;
      }
      if (kind == 3) x = g.Op("Sub", {x, g.Op("ReduceMean", {x, g.Ints({1})})});
      if (kind == 4) x = g.Op("Add", {x, g.Weight({columns})});
    }
    absl::StrAppend(&name, ",");
    g.Out(x);
  }
  return {name, g};
}

size_t PhasesBeside(const movement::Kernel& kernel) {
  size_t beside = 0;
  for (const movement::Phase& phase : kernel.phases) beside += phase.beside ? 1 : 0;
  return beside;
}

TEST(CodegenBeside, PartsComputeTheSame) {
  const std::vector<RunOptions> options = Options();
  if (options.empty()) GTEST_SKIP() << "no device of work-groups";
  for (const FusionResult& result : RunCases({Projections(), UnlikeParts(), Attentions(), SharedOperand()}, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 1u) << result.name;
    const movement::Kernel& kernel = result.kernels[0].kernel;
    EXPECT_EQ(kernel.BetweenBarriers().size(), 1u) << result.name << "\n" << movement::Print(kernel);
    EXPECT_GT(PhasesBeside(kernel), 0u) << result.name << "\n" << movement::Print(kernel);
  }
}

TEST(CodegenBeside, RandomParts) {
  std::vector<FusionCase> cases;
  for (uint64_t seed = 1; seed <= 30; ++seed) cases.push_back(DrawParts(seed));
  const std::vector<RunOptions> options = Options();
  if (options.empty()) GTEST_SKIP() << "no device of work-groups";
  int made = 0, refused = 0;
  for (const FusionResult& result : RunCases(cases, options)) {
    if (result.kernels.empty()) {
      EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition) << result.name << ": " << result.status;
      GTEST_LOG_(INFO) << result.name << ": " << result.status.message();
      ++refused;
      continue;
    }
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ++made;
  }
  EXPECT_GT(made, refused);
}

TEST(CodegenBeside, WhatIsConnectedOrOnAProcessorIsRefused) {
  G connected;
  connected.Out(connected.Op("Exp", {connected.Op("ReduceSum", {connected.In({8, 8}), connected.Ints({0})})}));
  RunOptions on_processor{Avx512Device()}, on_groups{OpenClTestDevice(4, 32)};
  on_processor.directives = on_groups.directives = Beside();
  for (const FusionResult& result : RunCases({{"connected", connected}}, {on_groups})) {
    EXPECT_THAT(std::string(result.status.message()), HasSubstr("all stages are connected"));
  }
  for (const FusionResult& result : RunCases({SharedOperand()}, {on_processor})) {
    EXPECT_THAT(std::string(result.status.message()), HasSubstr("runs its phases one after another"));
  }
}

}  // namespace
}  // namespace fusion::testing
