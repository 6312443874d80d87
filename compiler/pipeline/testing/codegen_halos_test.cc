// Windows of windows in one task: each task computes the rows that its neighbours compute, too (the form "halos"), and
// the results are those of separate kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/pipeline/testing/window_chains.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

std::vector<Directive> Halos() { return {{ecg::kNone, "form", "halos"}}; }

// Runs the whole graph of each case as one kernel with halos, which must have one phase.
std::string FailuresWithHalos(const std::vector<FusionCase>& cases, const std::vector<DeviceModel>& devices,
                              const std::vector<LayoutMode>& layouts, uint64_t seed = 0) {
  std::vector<RunOptions> options;
  for (const DeviceModel& device : devices) {
    for (const LayoutMode layout : layouts) {
      RunOptions& option = options.emplace_back(RunOptions{device, layout});
      option.directives = Halos();
      option.choices_seed = seed;
    }
  }
  std::string failures;
  for (const FusionResult& result : RunCases(cases, options)) {
    if (!result.status.ok()) absl::StrAppend(&failures, result.name, ": ", result.status.message(), "\n");
    if (result.kernels.size() == 1 && result.kernels[0].kernel.phases.size() == 1) continue;
    absl::StrAppend(&failures, result.name, ": not one kernel of one phase\n");
  }
  return failures;
}

std::vector<LayoutMode> AllLayouts() {
  return {LayoutMode::kPlain, LayoutMode::kChosen, LayoutMode::kBlocked, LayoutMode::kAxisLast};
}

// Tiles of rows on AVX-512 and AVX2, in every layout.
std::string FailuresInTasks(const std::vector<FusionCase>& cases) {
  return FailuresWithHalos(cases, {Avx512Device(), Avx2Device()}, AllLayouts());
}

TEST(CodegenHalos, Convolutions) {
  std::vector<FusionCase> cases = {TwoConvolutions({1, 16, 13, 11}, 24, 16), TwoConvolutions({2, 3, 12, 20}, 32, 5),
                                   TwoConvolutions({1, 32, 28, 28}, 32, 32),
                                   TwoConvolutions({1, 16, 14, 18}, 16, 16, {2, 2})};
  {
    G g;
    const V first = Relu(&g, Conv(&g, g.In({1, 8, 15, 17}), {16, 8, 3, 3}, kPad1, {2, 2}));
    const V second = Relu(&g, Conv(&g, first, {16, 16, 3, 3}));
    cases.push_back(Case("three, the first with stride 2", &g, Conv(&g, second, {8, 16, 3, 3})));
  }
  for (FusionCase& one : ReadAgain()) cases.push_back(std::move(one));
  EXPECT_EQ(FailuresInTasks(cases), "");
}

TEST(CodegenHalos, DepthwiseAndPointwise) {
  std::vector<FusionCase> cases;
  for (const auto& [taps, stride] : std::vector<std::pair<int64_t, int64_t>>{{3, 1}, {3, 2}, {5, 1}, {5, 2}}) {
    cases.push_back(DepthwiseAndPointwise(taps, stride));
  }
  for (const int64_t stride : {1, 2}) cases.push_back(InvertedResidual(stride));
  {
    G g;
    cases.push_back(Case("two depthwise", &g, Depthwise(&g, Depthwise(&g, g.In({1, 16, 11, 13}), 16, 3), 16, 5)));
  }
  EXPECT_EQ(FailuresInTasks(cases), "");
}

TEST(CodegenHalos, DilationsPoolingAndTransposes) {
  std::vector<FusionCase> cases;
  {
    G g;
    V x = g.In({1, 8, 19, 17});
    for (const int64_t d : {1, 2, 3, 2}) x = Relu(&g, Conv(&g, x, {8, 8, 3, 3}, Ints(4, d), {1, 1}, {d, d}));
    cases.push_back(Case("dilations 1 2 3 2", &g, x));
  }
  for (const char* pool : {"MaxPool", "AveragePool"}) {
    for (const int64_t stride : {1, 2}) cases.push_back(PoolingBehindConvolution(pool, stride));
  }
  cases.push_back(ConvolutionBehindPooling());
  for (const bool before : {true, false}) {
    G g;
    V x = g.In({1, 8, 9, 10});
    if (!before) x = Conv(&g, x, {8, 8, 3, 3});
    x = g.Op("ConvTranspose", {x, g.Weight({8, 12, 3, 3})}, {{"pads", kPad1}, {"strides", Ints{2, 2}}});
    if (before) x = Conv(&g, x, {8, 12, 3, 3});
    cases.push_back(Case(before ? "transposed, conv" : "conv, transposed", &g, x));
  }
  EXPECT_EQ(FailuresInTasks(cases), "");
}

TEST(CodegenHalos, HostileExtents) {
  std::vector<FusionCase> cases = {TwoConvolutions({1, 16, 1, 1}, 16, 16), TwoConvolutions({1, 16, 1, 33}, 16, 16),
                                   TwoConvolutions({3, 4, 33, 1}, 4, 4), TwoConvolutions({1, 1, 2, 2}, 1, 1)};
  {
    G g;
    const V first = Conv(&g, g.In({1, 8, 2, 3}), {8, 8, 9, 9}, Ints(4, 4));
    cases.push_back(Case("padding beyond the image", &g, Conv(&g, first, {8, 8, 9, 9}, Ints(4, 4))));
  }
  {
    G g;
    const V first = Conv(&g, g.In({1, 8, 5, 40}), {8, 8, 3, 3}, Ints(4, 6), {1, 1}, {6, 6});
    cases.push_back(Case("dilation beyond the image", &g, Conv(&g, first, {8, 8, 3, 3}, Ints(4, 6), {1, 1}, {6, 6})));
  }
  {
    G g;
    const V first = Conv(&g, g.In({1, 8, 16, 19}), {16, 8, 2, 2}, {0, 1, 1, 0}, {3, 3});
    cases.push_back(Case("strides beyond the window", &g, Conv(&g, first, {8, 16, 1, 1}, {1, 0, 0, 1}, {2, 2})));
  }
  {
    G g;
    const V first = Conv(&g, g.In({1, 8, 21, 10}), {8, 8, 3, 1}, {3, 0, 0, 0});
    cases.push_back(Case("padding on one side", &g, Conv(&g, first, {8, 8, 3, 3}, {0, 2, 3, 0})));
  }
  {
    G g;
    const V first = g.Op("Conv", {g.In({2, 16, 64}), g.Weight({24, 16, 3})}, {{"pads", Ints{1, 1}}});
    cases.push_back(Case("rows", &g, g.Op("Conv", {first, g.Weight({16, 24, 5})}, {{"pads", Ints{2, 2}}})));
  }
  {
    G g;
    const V first = g.Op("Conv", {g.In({1, 4, 5, 6, 7}), g.Weight({8, 4, 3, 3, 3})}, {{"pads", Ints(6, 1)}});
    cases.push_back(Case("volumes", &g, g.Op("Conv", {first, g.Weight({4, 8, 3, 3, 3})}, {{"pads", Ints(6, 1)}})));
  }
  EXPECT_EQ(FailuresInTasks(cases), "");
}

// The outside of an inner tensor is padding, whatever the rows beside it hold.
TEST(CodegenHalos, ValuesThatAreNoNumbers) {
  std::vector<FusionCase> cases;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float special : {kInfinity, -kInfinity, std::nanf(""), -0.0f}) {
    Tensor x(DType::kF32, {1, 8, 12, 13});
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t row = i / 13 % 12;
      x.mutable_as<float>()[i] = row == 0 || row == 11 ? special : static_cast<float>(i % 7) - 3;
    }
    for (const bool pool : {false, true}) {
      G g;
      const V first = Conv(&g, g.In(x), {16, 8, 3, 3});
      const V last = pool ? g.Op("MaxPool", {first}, {{"kernel_shape", Ints{3, 3}}, {"pads", kPad1}})
                          : Conv(&g, first, {8, 16, 3, 3});
      cases.push_back(Case(absl::StrCat(special, pool ? " pool" : " conv"), &g, last));
    }
  }
  EXPECT_EQ(FailuresInTasks(cases), "");
}

std::vector<FusionCase> Selection() {
  std::vector<FusionCase> cases = {TwoConvolutions({1, 16, 13, 11}, 24, 16),
                                   TwoConvolutions({1, 16, 14, 18}, 16, 16, {2, 2}),
                                   TwoConvolutions({1, 16, 1, 1}, 16, 16)};
  {
    G g;
    const V x = g.In({1, 16, 14, 14});
    const V wide = Relu(&g, Conv(&g, x, {48, 16, 1, 1}, Ints(4, 0)));
    const V narrow = Conv(&g, Relu(&g, Depthwise(&g, wide, 48, 3)), {16, 48, 1, 1}, Ints(4, 0));
    cases.push_back(Case("inverted residual", &g, g.Op("Add", {narrow, x})));
  }
  {
    G g;
    const V first = Conv(&g, g.In({1, 8, 15, 14}), {16, 8, 3, 3});
    cases.push_back(
        Case("conv, pool", &g,
             g.Op("MaxPool", {first}, {{"kernel_shape", Ints{3, 3}}, {"pads", kPad1}, {"strides", Ints{2, 2}}})));
  }
  return cases;
}

TEST(CodegenHalos, OtherChoices) {
  for (const uint64_t seed : {3, 4, 5}) {
    EXPECT_EQ(
        FailuresWithHalos(Selection(), {Avx512Device(), Avx2Device()}, {LayoutMode::kPlain, LayoutMode::kChosen}, seed),
        "");
  }
}

TEST(CodegenHalos, OtherDevices) {
  for (const DeviceModel& device :
       {NeonDevice(), OpenClTestDevice(8, 1), OpenClTestDevice(4, 64), CudaTestDevice(64)}) {
    if (const absl::Status can = CanRun(device); !can.ok()) {
      GTEST_LOG_(INFO) << "skipped: " << can.message();
      continue;
    }
    EXPECT_EQ(FailuresWithHalos(Selection(), {device}, {LayoutMode::kPlain}), "") << device.kind;
  }
}

TEST(CodegenHalos, RandomChains) {
  std::vector<FusionCase> cases;
  for (uint64_t seed = 1; seed <= 40; ++seed) cases.push_back(DrawChain(seed));
  std::vector<RunOptions> options;
  for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
    for (const LayoutMode layout : {LayoutMode::kPlain, LayoutMode::kChosen}) {
      options.push_back({device, layout});
      options.back().directives = Halos();
    }
  }
  int made = 0, refused = 0, shared = 0;
  for (const FusionResult& result : RunCases(cases, options)) {
    const bool scheduled = !result.kernels.empty();
    ++(scheduled ? made : refused);
    if (!scheduled) {
      EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition) << result.name << ": " << result.status;
      GTEST_LOG_(INFO) << result.name << ": " << result.status.message();
      continue;
    }
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    if (result.kernels[0].kernel.phases[0].tasks() > 1) ++shared;
  }
  EXPECT_GT(4 * shared, made) << "tasks share the images out";
  EXPECT_GT(made, 9 * refused) << "most chains have a kernel";
}

}  // namespace
}  // namespace fusion::testing
