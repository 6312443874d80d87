// Windows that slide down the rows of an image in one task: each stage computes some rows with each turn of a loop, and
// rings keep what windows need again (the form "windows"). The results are those of separate kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/movement/kernel.h"
#include "compiler/movement/parse.h"
#include "compiler/movement/print.h"
#include "compiler/movement/ring_places.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/pipeline/testing/window_chains.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;
using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

RunOptions Sliding(const DeviceModel& device, LayoutMode layout = LayoutMode::kPlain) {
  RunOptions options{device, layout};
  options.directives = {{ecg::kNone, "form", "windows"}};
  return options;
}

// Names the rows of rings that more than one turn writes. (Verify refuses a row that is read and was not written.)
std::string RowsWrittenTwice(const movement::Kernel& kernel) {
  std::string faults;
  std::map<int, std::map<int64_t, std::set<int64_t>>> turns;  // of a buffer: the turns that write each row
  for (const movement::Step& step : kernel.phases[0].steps) {
    if (!step.turn) continue;
    for (const movement::RingRows& rows : step.turn->writes) {
      for (int64_t n = 0; n < step.turn->axis.extent; ++n) {
        const movement::RowRange range = movement::RowsInTurn(rows, *step.turn, n, *kernel.buffers[rows.buffer].ring);
        for (int64_t row = range.first; row < range.last; ++row) turns[rows.buffer][row].insert(n);
      }
    }
  }
  for (const auto& [buffer, rows] : turns) {
    for (const auto& [row, numbers] : rows) {
      if (numbers.size() > 1) absl::StrAppend(&faults, "row ", row, " of b", buffer, " is written in two turns; ");
    }
  }
  return faults;
}

// The fault of a kernel that should have this form, in words; empty if there is none.
std::string FaultsOf(const movement::Kernel& kernel) {
  if (kernel.phases.size() != 1 || kernel.phases[0].task_loops.size() != 1) return "not one phase with one loop";
  std::string faults = RowsWrittenTwice(kernel);
  const bool ring = std::any_of(kernel.buffers.begin(), kernel.buffers.end(),
                                [](const movement::Buffer& buffer) { return buffer.ring.has_value(); });
  if (!ring) absl::StrAppend(&faults, "no ring");
  const std::string text = movement::Print(kernel);
  const absl::StatusOr<movement::Kernel> parsed = movement::Parse(text);
  if (!parsed.ok() || movement::Print(*parsed) != text) absl::StrAppend(&faults, "does not parse back");
  return faults;
}

std::string FailuresOf(const std::vector<FusionCase>& cases, const std::vector<RunOptions>& options) {
  std::string failures;
  for (const FusionResult& result : RunCases(cases, options)) {
    if (!result.status.ok()) {
      absl::StrAppend(&failures, result.name, ": ", result.status.message(), "\n");
      continue;
    }
    const std::string faults = result.kernels.size() == 1 ? FaultsOf(result.kernels[0].kernel) : "not one kernel";
    if (!faults.empty()) absl::StrAppend(&failures, result.name, ": ", faults, "\n");
  }
  return failures;
}

DeviceModel WithUnits(DeviceModel device, int units) {
  device.parallel_units = units;
  return device;
}

// On AVX-512 with one unit, and on AVX2 with four, which share out tiles of columns, in every layout.
std::string FailuresAnywhere(const std::vector<FusionCase>& cases) {
  std::vector<RunOptions> options;
  for (const LayoutMode layout :
       {LayoutMode::kPlain, LayoutMode::kChosen, LayoutMode::kBlocked, LayoutMode::kAxisLast}) {
    options.push_back(Sliding(WithUnits(Avx512Device(), 1), layout));
    options.push_back(Sliding(WithUnits(Avx2Device(), 4), layout));
  }
  return FailuresOf(cases, options);
}

TEST(CodegenSliding, TwoConvolutions) {
  EXPECT_EQ(FailuresAnywhere({TwoConvolutions({1, 16, 13, 11}, 24, 16), TwoConvolutions({1, 32, 28, 28}, 32, 32),
                              TwoConvolutions({1, 16, 2, 9}, 16, 16), TwoConvolutions({1, 8, 40, 3}, 16, 8)}),
            "");
}

TEST(CodegenSliding, Batches) { EXPECT_EQ(FailuresAnywhere({TwoConvolutions({3, 8, 9, 20}, 16, 16)}), ""); }

TEST(CodegenSliding, Strides) {
  std::vector<FusionCase> cases = {TwoConvolutions({1, 16, 14, 18}, 16, 16, {2, 2}),
                                   TwoConvolutions({1, 16, 13, 11}, 16, 16, {2, 1}),
                                   TwoConvolutions({1, 16, 17, 9}, 16, 16, {3, 2})};
  G g;
  const V first = Relu(&g, Conv(&g, g.In({1, 8, 15, 17}), {16, 8, 3, 3}, kPad1, {2, 2}));
  const V second = Relu(&g, Conv(&g, first, {16, 16, 3, 3}));
  cases.push_back(Case("three, the first with stride 2", &g, Conv(&g, second, {16, 16, 3, 3}, kPad1, {2, 2})));
  EXPECT_EQ(FailuresAnywhere(cases), "");
}

TEST(CodegenSliding, Residuals) { EXPECT_EQ(FailuresAnywhere(ReadAgain()), ""); }

// SAR-DRN's chain, whose image is smaller than some windows.
TEST(CodegenSliding, SevenDilations) {
  std::vector<FusionCase> cases;
  for (const int64_t rows : {31, 6}) {
    G g;
    V x = g.In({1, 8, rows, 20});
    for (const int64_t d : {1, 2, 3, 4, 3, 2, 1}) {
      x = Relu(&g, Conv(&g, x, {8, 8, 3, 3}, Ints(4, d), {1, 1}, {d, d}));
    }
    cases.push_back(Case(absl::StrCat("seven dilations over ", rows, " rows"), &g, x));
  }
  EXPECT_EQ(FailuresAnywhere(cases), "");
}

TEST(CodegenSliding, DepthwiseAndPointwise) {
  std::vector<FusionCase> cases;
  for (const auto& [taps, stride] : std::vector<std::pair<int64_t, int64_t>>{{3, 1}, {3, 2}, {5, 1}}) {
    cases.push_back(DepthwiseAndPointwise(taps, stride));
  }
  for (const int64_t stride : {1, 2}) cases.push_back(InvertedResidual(stride));
  EXPECT_EQ(FailuresAnywhere(cases), "");
}

TEST(CodegenSliding, Pooling) {
  std::vector<FusionCase> cases;
  for (const char* pool : {"MaxPool", "AveragePool"}) {
    for (const int64_t stride : {1, 2}) cases.push_back(PoolingBehindConvolution(pool, stride));
  }
  cases.push_back(ConvolutionBehindPooling());
  EXPECT_EQ(FailuresAnywhere(cases), "");
}

TEST(CodegenSliding, HostileExtents) {
  std::vector<FusionCase> cases = {TwoConvolutions({1, 16, 1, 33}, 16, 16), TwoConvolutions({2, 16, 33, 1}, 16, 16)};
  {
    G g;
    const V first = Conv(&g, g.In({1, 8, 5, 40}), {8, 8, 3, 3}, Ints(4, 6), {1, 1}, {6, 6});
    cases.push_back(Case("dilation beyond the image", &g, Conv(&g, first, {8, 8, 3, 3}, Ints(4, 6), {1, 1}, {6, 6})));
  }
  {
    G g;
    const V first = Conv(&g, g.In({1, 8, 21, 10}), {8, 8, 3, 1}, {3, 0, 0, 0});
    cases.push_back(Case("padding on one side", &g, Conv(&g, first, {8, 8, 3, 3}, {0, 2, 3, 0})));
  }
  EXPECT_EQ(FailuresAnywhere(cases), "");
}

// The outside of an inner tensor is padding, whatever the places beside its rows hold.
TEST(CodegenSliding, ValuesThatAreNoNumbers) {
  std::vector<FusionCase> cases;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float special : {kInfinity, std::nanf("")}) {
    Tensor x(DType::kF32, {1, 8, 12, 13});
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const int64_t row = i / 13 % 12;
      x.mutable_as<float>()[i] = row == 0 || row == 11 ? special : static_cast<float>(i % 7) - 3;
    }
    G g;
    const V first = Conv(&g, g.In(x), {16, 8, 3, 3});
    cases.push_back(Case(absl::StrCat(special), &g, Conv(&g, first, {8, 16, 3, 3})));
  }
  EXPECT_EQ(FailuresAnywhere(cases), "");
}

TEST(CodegenSliding, OtherChoices) {
  const std::vector<FusionCase> cases = {TwoConvolutions({1, 16, 13, 21}, 24, 16),
                                         TwoConvolutions({1, 16, 14, 18}, 16, 16, {2, 2})};
  std::vector<RunOptions> options;
  for (const uint64_t seed : {3, 4, 5, 6}) {
    for (const LayoutMode layout : {LayoutMode::kPlain, LayoutMode::kChosen}) {
      options.push_back(Sliding(WithUnits(Avx512Device(), 2), layout));
      options.back().choices_seed = seed;
    }
  }
  EXPECT_EQ(FailuresOf(cases, options), "");
}

// The reason for which a case has no such kernel.
std::string Refusal(const FusionCase& of, const DeviceModel& device = Avx512Device()) {
  const std::vector<FusionResult> results = RunCases({of}, {Sliding(device)});
  if (!results[0].kernels.empty()) return "none";
  EXPECT_EQ(results[0].status.code(), absl::StatusCode::kFailedPrecondition) << results[0].status;
  return std::string(results[0].status.message());
}

TEST(CodegenSliding, RefusesWithAReason) {
  for (const DeviceModel& device : {OpenClTestDevice(8, 1), OpenClTestDevice(4, 64), CudaTestDevice(64)}) {
    EXPECT_THAT(Refusal(TwoConvolutions({1, 16, 12, 12}, 16, 16), device),
                HasSubstr("windows slide along loops inside the tasks of a processor"));
  }
  {
    G g;
    EXPECT_THAT(Refusal(Case("one map", &g, Relu(&g, g.In({1, 4, 8, 8})))), HasSubstr("one stage alone"));
  }
  {
    G g;
    const V first = Relu(&g, Conv(&g, g.In({1, 8, 12, 12}), {8, 8, 3, 3}));
    const V second = Conv(&g, first, {8, 8, 3, 3});
    g.Out(first);
    EXPECT_THAT(Refusal(Case("two results", &g, second)), HasSubstr("is a result of the kernel"));
  }
  {
    G g;
    const V rows = g.Op("Softmax", {g.In({64, 100})}, {{"axis", int64_t{1}}});
    EXPECT_THAT(Refusal(Case("no windows", &g, rows)), HasSubstr("slides"));
  }
}

TEST(CodegenSliding, RandomChains) {
  std::vector<FusionCase> cases;
  for (uint64_t seed = 1; cases.size() < 40; ++seed) {
    FusionCase chain = DrawChain(seed);
    const auto is_window = [](const ecg::Node& node) { return node.op != "Relu"; };
    const std::vector<ecg::Node>& nodes = chain.graph.nodes();
    if (std::count_if(nodes.begin(), nodes.end(), is_window) > 1) cases.push_back(std::move(chain));
  }
  const std::vector<RunOptions> options = {Sliding(WithUnits(Avx512Device(), 1)),
                                           Sliding(WithUnits(Avx2Device(), 3), LayoutMode::kChosen)};
  int made = 0, refused = 0;
  for (const FusionResult& result : RunCases(cases, options)) {
    if (result.kernels.empty()) {
      ++refused;
      EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition) << result.name << ": " << result.status;
      GTEST_LOG_(INFO) << result.name << ": " << result.status.message();
      continue;
    }
    ++made;
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    EXPECT_EQ(FaultsOf(result.kernels[0].kernel), "") << result.name;
  }
  GTEST_LOG_(INFO) << made << " kernels, " << refused << " refused";
  EXPECT_GT(made, 4 * refused) << "most chains have a kernel";
}

}  // namespace
}  // namespace fusion::testing
