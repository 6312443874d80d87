// Rows that are reduced and read again in one task (compiler/schedule/stitch/join_rows.h): what is in registers of a
// vector or of a team of work-items must be what scratch would hold, for rows of any length and any values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using ::testing::HasSubstr;

// Rows with everything that a maximum or a sum may meet, each value at some distance from a row's beginning.
Tensor Hostile(const Shape& shape, DType dtype = DType::kF32) {
  const double inf = std::numeric_limits<double>::infinity();
  const double values[] = {0.5, -0.0, std::nan(""), -3, inf, 88, -inf, 1e-40, -88, 2};
  Tensor x(dtype, shape);
  const int64_t columns = shape.back();
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t row = i / std::max<int64_t>(1, columns), column = i % std::max<int64_t>(1, columns);
    double value = 0.25 * static_cast<double>((3 * i) % 11) - 1;
    if (row % 4 == 1 && column == (5 * row) % columns) value = values[(row / 4) % 10];
    if (row % 4 == 2) value = -inf;  // of nothing else
    if (row % 4 == 3 && column == columns - 1) value = values[(row / 4 + 2) % 10];
    x.SetDouble(i, value);
  }
  return x;
}

V Softmax(G* g, V x) { return g->Op("Softmax", {x}, {{"axis", int64_t{-1}}}); }

V Norm(G* g, V x, int64_t columns) {
  return g->Op("LayerNormalization", {x, g->Weight({columns}), g->Weight({columns})}, {{"axis", int64_t{-1}}});
}

const std::vector<Shape>& Shapes() {
  static const auto* const kShapes = new std::vector<Shape>{
      {1, 1}, {3, 1}, {7, 5}, {9, 16}, {6, 17}, {40, 31}, {17, 64}, {11, 129}, {70, 40}, {2, 3, 300}, {5, 1030}};
  return *kShapes;
}
// Drivers of OpenCL take seconds to build a kernel.
const std::vector<Shape>& FewShapes() {
  static const auto* const kShapes = new std::vector<Shape>{{3, 1}, {40, 31}, {11, 129}};
  return *kShapes;
}

std::vector<FusionCase> Cases(const std::vector<Shape>& shapes) {
  std::vector<FusionCase> cases;
  for (const Shape& shape : shapes) {
    const std::string of = ShapeToString(shape);
    for (const bool hostile : {false, true}) {
      G g;
      g.Out(Softmax(&g, hostile ? g.In(Hostile(shape)) : g.In(shape)));
      cases.emplace_back(absl::StrCat("softmax ", of, hostile ? " hostile" : ""), g);
    }
    {
      G g;  // the sum that comes before is also a result
      const V sum = g.Op("Add", {g.In(shape), g.In(shape)});
      g.Out(Norm(&g, sum, shape.back()));
      g.Out(sum);
      cases.emplace_back(absl::StrCat("norm ", of), g);
    }
    {
      G g;
      const V y = g.Op("LogSoftmax", {g.In(Hostile(shape))}, {{"axis", int64_t{-1}}});
      g.Out(g.Op("Mul", {y, g.In(shape)}));
      cases.emplace_back(absl::StrCat("log softmax ", of), g);
    }
  }
  {
    G g;  // softmax of a norm: two reductions, each read by the next
    g.Out(Softmax(&g, Norm(&g, g.In({33, 50}), 50)));
    cases.emplace_back("norm, softmax", g);
  }
  {
    G g;
    g.Out(Softmax(&g, g.In(Hostile({21, 37}, DType::kF16))));
    cases.emplace_back("softmax of halves", g);
  }
  {
    G g;  // integers: the largest minus each
    const V x = g.In({13, 45}, DType::kI32);
    const V most = g.Op("ReduceMax", {x, g.Ints({1})}, {{"keepdims", int64_t{1}}});
    g.Out(g.Op("Sub", {g.Op("Mul", {most, most}), x}));
    cases.emplace_back("integers", g);
  }
  {
    G g;  // rows along another axis than the last
    g.Out(g.Op("Softmax", {g.In({6, 19, 8})}, {{"axis", int64_t{1}}}));
    cases.emplace_back("along the middle", g);
  }
  {
    G g;
    const V scores = g.Op("MatMul", {g.In({2, 37, 20}), g.In({2, 20, 53})});
    g.Out(g.Op("MatMul", {Softmax(&g, g.Op("Mul", {scores, g.Scalar(0.25)})), g.In({2, 53, 24})}));
    cases.emplace_back("attention", g);
  }
  return cases;
}

// Also with the steps taken apart.
std::vector<RunOptions> On(const std::vector<DeviceModel>& devices) {
  std::vector<RunOptions> options;
  for (const DeviceModel& device : devices) {
    options.push_back({device});
    options.push_back({device});
    options.back().choices = {{"rows", 1}};
  }
  return options;
}

int RegistersOf(const FusionResult& result) {
  int registers = 0;
  for (const FusionKernel& kernel : result.kernels) {
    for (const movement::Buffer& buffer : kernel.kernel.buffers) registers += buffer.scope == Scope::kWarp;
  }
  return registers;
}

// Returns the failures, and checks that rows are in registers in as many cases of a device, on average.
std::string FailuresOn(const std::vector<DeviceModel>& devices, const std::vector<Shape>& shapes, size_t least) {
  std::string failures;
  size_t in_registers = 0;
  const std::vector<RunOptions> options = On(devices);
  const std::vector<FusionResult> results = RunCases(Cases(shapes), options);
  for (size_t r = 0; r < results.size(); ++r) {
    if (!results[r].status.ok()) absl::StrAppend(&failures, results[r].name, ": ", results[r].status.message(), "\n");
    if (r % 2 == 0) in_registers += RegistersOf(results[r]) > 0;
    if (r % 2 == 1) EXPECT_EQ(RegistersOf(results[r]), 0) << results[r].name;
  }
  EXPECT_GE(in_registers, least * devices.size()) << "of " << results.size() / 2;
  return failures;
}

TEST(Rows, InVectors) { EXPECT_EQ(FailuresOn({Avx512Device(), Avx2Device()}, Shapes(), 30), ""); }

TEST(Rows, ByTeamsAsCuda) {
  const absl::Status can_run = CanRun(CudaTestDevice(32));
  if (!can_run.ok()) GTEST_SKIP() << can_run;
  EXPECT_EQ(FailuresOn({CudaTestDevice(8), CudaTestDevice(32), CudaTestDevice(128)}, Shapes(), 20), "");
}

TEST(Rows, ByTeamsOnOpenCl) {
  const absl::Status can_run = CanRun(OpenClTestDevice(4, 32));
  if (!can_run.ok()) GTEST_SKIP() << can_run;
  EXPECT_EQ(FailuresOn({OpenClTestDevice(4, 32), OpenClTestDevice(16, 1)}, FewShapes(), 8), "");
}

TEST(Rows, ByTeamsWithSubgroups) {
  const absl::Status can_run = CanRun(SubgroupTestDevice(4, 32));
  if (!can_run.ok()) GTEST_SKIP() << can_run;
  EXPECT_EQ(FailuresOn({SubgroupTestDevice(4, 8), SubgroupTestDevice(4, 32)}, FewShapes(), 8), "");
}

// A plan that wants a row's maximum in registers gets it on every device, also where a work-group would share the row.
TEST(Rows, APlanMayWantRegisters) {
  std::vector<FusionCase> cases;
  std::vector<RunOptions> options;
  for (const int64_t columns : {2, 40, 700}) {
    G g;
    const V x = g.In(Hostile({50, columns}));
    const V most = g.Op("ReduceMax", {x, g.Ints({1})}, {{"keepdims", int64_t{1}}});
    g.Out(g.Op("Exp", {g.Op("Sub", {x, most})}));
    cases.emplace_back(absl::StrCat("rows of ", columns), g);
    if (!options.empty()) continue;
    FusionBlock fusion_block = {0, 1, 2};
    fusion_block.inner = {{0, 1, most, Scope::kWarp, Scope::kWarp}};
    for (const DeviceModel& device : {Avx512Device(), Avx2Device(), CudaTestDevice(128), OpenClTestDevice(4, 64)}) {
      options.push_back({device});
      options.back().fusion_blocks = {fusion_block};
    }
  }
  for (const FusionResult& result : RunCases(cases, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    EXPECT_EQ(RegistersOf(result), 1) << result.name;
  }
}

}  // namespace
}  // namespace fusion::testing
