// CumSum and CumProd through the printed kernels: along rows and columns, from either end, with and without the element
// itself, with operators fused before and behind them. Also rows of elementary functions that end within a vector.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;

V Prefix(G* g, const char* op, V x, int64_t axis, int64_t exclusive, int64_t reverse) {
  return g->Op(op, {x, g->Scalar(static_cast<double>(axis), DType::kI64)},
               {{"exclusive", exclusive}, {"reverse", reverse}});
}

TEST(CodegenPrefix, EveryAxisAndEnd) {
  std::vector<FusionCase> cases;
  for (const Shape& shape : std::vector<Shape>{{5, 37}, {37, 5}, {40, 150}, {3, 20, 70}, {4, 1030}, {1030, 20}}) {
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      G g;
      const V x = g.In(shape);
      for (const int64_t exclusive : {0, 1}) {
        for (const int64_t reverse : {0, 1}) g.Out(Prefix(&g, "CumSum", x, axis, exclusive, reverse));
      }
      cases.push_back(FusionCase("sums of " + ShapeToString(shape) + " along " + std::to_string(axis), g));
    }
  }
  {
    G g;
    const V x = g.In({6, 50});
    g.Out(Prefix(&g, "CumProd", x, 0, 1, 0));
    g.Out(Prefix(&g, "CumProd", x, 1, 0, 1));
    g.Out(Prefix(&g, "CumProd", g.In({1100, 3}), 0, 0, 0));
    cases.push_back(FusionCase("products", g));
  }
  for (const DType dtype : {DType::kF64, DType::kF16, DType::kI32, DType::kI64}) {
    G g;
    const V x = g.In({9, 70}, dtype);
    for (const int64_t axis : {0, 1}) g.Out(Prefix(&g, "CumSum", x, axis, 0, 0));
    cases.push_back(FusionCase(std::string("sums of ") + DTypeName(dtype), g));
  }
  {
    G g;
    const V x = g.Op("Mul", {g.In({30, 90}), g.In({90})});
    for (const int64_t axis : {0, 1})
      g.Out(g.Op("Tanh", {g.Op("Add", {Prefix(&g, "CumSum", x, axis, 0, 0), g.In({30, 1})})}));
    cases.push_back(FusionCase("between maps", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

// Each form that the scheduler has: one pass, and parts with and without a copy.
TEST(CodegenPrefix, LongAxesInEveryForm) {
  std::vector<FusionCase> cases;
  for (const Shape& shape : std::vector<Shape>{{3, 1100}, {1100, 20}, {2, 1500, 3}}) {
    const int64_t axis = shape[0] > 3 ? 0 : 1;
    G g;
    const V x = g.Op("Mul", {g.In(shape), g.In(shape)});
    for (const int64_t end : {0, 1}) g.Out(g.Op("Neg", {Prefix(&g, "CumSum", x, axis, end, 1 - end)}));
    cases.push_back(FusionCase("sums of " + ShapeToString(shape), g));
  }
  std::vector<RunOptions> options;
  int most = 0;  // passes of a kernel
  for (int form = 0; form < 6; ++form) {
    for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
      options.push_back({device, LayoutMode::kPlain, /*split=*/true});
      options.back().choices = {{"form", form}};
    }
  }
  for (const FusionResult& result : RunCases(cases, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    for (const FusionKernel& kernel : result.kernels) {
      int passes = 0;
      for (const movement::Phase& phase : kernel.kernel.phases) {
        for (const movement::Step& step : phase.steps) passes += step.Is<movement::PrefixPass>() ? 1 : 0;
      }
      most = std::max(most, passes);
    }
  }
  EXPECT_GT(most, 1) << "no form had parts";
}

TEST(CodegenPrefix, IsOnePass) {
  G g;
  g.Out(Prefix(&g, "CumSum", g.In({512, 1024}), 0, 0, 0));
  G rows, tall;
  rows.Out(Prefix(&rows, "CumSum", rows.In({512, 1024}), 1, 1, 1));
  tall.Out(Prefix(&tall, "CumSum", tall.In({20000, 64}), 0, 0, 0));
  for (const FusionResult& result :
       RunCases({FusionCase("columns", g), FusionCase("rows", rows), FusionCase("tall columns", tall)},
                {{Avx512Device(), LayoutMode::kPlain, false}})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 1u);
    ASSERT_EQ(result.kernels[0].kernel.phases.size(), 1u);
    const movement::Step& step = result.kernels[0].kernel.phases[0].steps[0];
    EXPECT_TRUE(step.Is<movement::PrefixPass>()) << movement::Print(result.kernels[0].kernel);
    EXPECT_EQ(movement::VectorAxisOf(step) >= 0, result.name.find("columns") != std::string::npos) << result.name;
  }
}

// The end of a row is a part of a vector: the kernel reads and writes nothing behind it.
TEST(CodegenParts, RowsThatEndWithinAVector) {
  std::vector<FusionCase> cases;
  for (const int64_t width : {1, 3, 4, 5, 9, 15, 17, 31, 33, 100}) {
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      G g;
      g.Out(g.Op(op, {g.In({7, width})}, {{"axis", int64_t{-1}}}));
      cases.push_back(FusionCase(op + std::to_string(width), g));
    }
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      G g;
      g.Out(g.Op("Exp", {g.In({7, width}, dtype)}));
      cases.push_back(FusionCase(std::string("exp ") + DTypeName(dtype) + std::to_string(width), g));
    }
    G g;  // behind a broadcast, with several types, along an inner axis that is not a whole row
    const V x = g.Op("Exp", {g.Op("Add", {g.In({3, 1, width}), g.In({5, 1})})});
    g.Out(g.Op("Slice", {x, g.Ints({0}), g.Ints({width}), g.Ints({2})}));
    g.Out(g.Op("Greater", {g.Op("Sin", {x}), g.Scalar(0.3)}));
    g.Out(g.Op("ReduceLogSumExp", {x, g.Ints({2})}));
    cases.push_back(FusionCase("mixed " + std::to_string(width), g));
  }
  EXPECT_EQ(Failures(cases), "");
}

}  // namespace
}  // namespace fusion::testing
