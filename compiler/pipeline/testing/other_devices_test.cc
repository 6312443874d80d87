// A selection of the printer's strategies on devices that this machine only emulates: aarch64 under qemu; OpenCL on the
// processor, with one work-item a task, which suits processors, and with work-groups, which suit GPUs; and CUDA text as
// C++.
#include <gtest/gtest.h>

#include "compiler/pipeline/testing/function_cases.h"
#include "compiler/pipeline/testing/narrow_cases.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

DeviceModel Device(const std::string& name) {
  if (name == "Neon") return NeonDevice();
  if (name == "Cuda") return CudaTestDevice(8);
  if (name == "CudaWarps") return CudaTestDevice(64);
  return name == "OpenCl" ? OpenClTestDevice(16, 1) : OpenClTestDevice(4, 8);
}

class Devices : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const absl::Status can_run = CanRun(Device(GetParam()));
    if (!can_run.ok()) GTEST_SKIP() << GetParam() << ": kernels are not run: " << can_run.message();
  }

  std::string FailuresHere(const std::vector<FusionCase>& cases) {
    const DeviceModel device = Device(GetParam());
    std::vector<RunOptions> options;
    for (LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kChosen}) options.push_back({device, mode, false});
    options.push_back({device, LayoutMode::kChosen, true});
    return Failures(cases, options);
  }
};

INSTANTIATE_TEST_SUITE_P(, Devices, ::testing::Values("Neon", "OpenCl", "OpenClGroups", "Cuda", "CudaWarps"),
                         [](const auto& info) { return std::string(info.param); });

FusionCase Unary(const std::string& op, const Shape& shape, DType dtype = DType::kF32) {
  G g;
  g.Out(g.Op(op, {g.In(shape, dtype)}));
  return FusionCase(op + " " + DTypeName(dtype), g);
}

FusionCase Convolution(const std::string& name, const Shape& x, const Shape& w, const G::Attrs& attrs) {
  G g;
  const V y = g.Op("Conv", {g.In(x), g.Weight(w), g.Weight({w[0]})}, attrs);
  g.Out(g.Op("Relu", {y}));
  return FusionCase(name, g);
}

FusionCase CastTo(DType from, DType to, int64_t onnx_type) {
  G g;
  g.Out(g.Op("Cast", {g.In({5, 7}, from)}, {{"to", onnx_type}}));
  return FusionCase(std::string(DTypeName(from)) + " to " + DTypeName(to), g);
}

TEST_P(Devices, Elementwise) {
  std::vector<FusionCase> cases;
  for (const char* op : {"Exp", "Tanh", "Erf", "Log", "Sqrt", "Sigmoid", "Abs", "Floor", "Round", "Sign", "Softplus"}) {
    cases.push_back(Unary(op, {3, 37}));
  }
  cases.push_back(Unary("Tan", {3, 5}));
  cases.push_back(Unary("Tanh", {3, 5}, DType::kF64));
  G g;
  const V x = g.In({4, 1, 19}), y = g.In({3, 19});
  g.Out(g.Op("Max", {g.Op("Div", {x, y}), g.Op("Pow", {x, g.Scalar(2)})}));
  cases.push_back(FusionCase("broadcast", g));
  EXPECT_EQ(FailuresHere(cases), "");
}

TEST_P(Devices, FunctionsAtSpecialValues) {
  EXPECT_EQ(Failures(FunctionCases(), {{Device(GetParam()), LayoutMode::kPlain, false}}), "");
}

TEST_P(Devices, ElementTypes) {
  std::vector<FusionCase> cases = {
      Unary("Exp", {3, 11}, DType::kF16),    Unary("Sigmoid", {3, 11}, DType::kBF16),
      Unary("Neg", {5, 7}, DType::kI8),      Unary("Abs", {5, 7}, DType::kI64),
      CastTo(DType::kF32, DType::kF16, 10),  CastTo(DType::kF16, DType::kF32, 1),
      CastTo(DType::kF32, DType::kBF16, 16), CastTo(DType::kBF16, DType::kF32, 1),
      CastTo(DType::kF32, DType::kI32, 6),   CastTo(DType::kI8, DType::kF32, 1),
      CastTo(DType::kI64, DType::kF32, 1),   CastTo(DType::kF32, DType::kBool, 9),
  };
  G g;
  const V scale = g.Scalar(0.05), zero = g.Scalar(3, DType::kI8);
  const V quantized = g.Op("QuantizeLinear", {g.In({4, 33}), scale, zero});
  g.Out(quantized);
  g.Out(g.Op("DequantizeLinear", {quantized, scale, zero}));
  cases.push_back(FusionCase("int8", g));
  EXPECT_EQ(FailuresHere(cases), "");
}

TEST_P(Devices, NarrowTypes) { EXPECT_EQ(FailuresHere(NarrowCases()), ""); }

TEST_P(Devices, Rows) {
  std::vector<FusionCase> cases;
  {
    G g;
    g.Out(g.Op("Softmax", {g.In({6, 37})}, {{"axis", int64_t{-1}}}));
    cases.push_back(FusionCase("softmax", g));
  }
  {
    G g;
    g.Out(g.Op("LayerNormalization", {g.In({5, 48}), g.Weight({48}), g.Weight({48})}));
    cases.push_back(FusionCase("layernorm", g));
  }
  {
    G g;
    g.Out(g.Op("ReduceSum", {g.In({1, 300}), g.Ints({1})}));  // fewer results than work-items
    g.Out(g.Op("ReduceMin", {g.In({2, 300}, DType::kI32), g.Ints({1})}));
    g.Out(g.Op("ReduceMax", {g.In({3, 4, 21}), g.Ints({2})}));
    g.Out(g.Op("ReduceMean", {g.In({3, 16, 20}), g.Ints({1})}));
    cases.push_back(FusionCase("reductions", g));
  }
  EXPECT_EQ(FailuresHere(cases), "");
}

TEST_P(Devices, Products) {
  std::vector<FusionCase> cases;
  for (const Shape& shape : std::vector<Shape>{{17, 24, 32}, {1, 64, 10}, {8, 5, 19}}) {
    G g;
    const V y = g.Op("MatMul", {g.In({shape[0], shape[1]}), g.Weight({shape[1], shape[2]})});
    g.Out(g.Op("Tanh", {g.Op("Add", {y, g.Weight({shape[2]})})}));
    cases.push_back(FusionCase("epilogue " + ShapeToString(shape), g));
  }
  {
    G g;
    const V scores = g.Op("MatMul", {g.In({2, 9, 16}), g.In({2, 16, 9})});
    g.Out(g.Op("MatMul", {g.Op("Softmax", {scores}, {{"axis", int64_t{-1}}}), g.In({2, 9, 16})}));
    cases.push_back(FusionCase("attention", g));
  }
  EXPECT_EQ(FailuresHere(cases), "");
}

TEST_P(Devices, Windows) {
  const Ints pad1 = {1, 1, 1, 1};
  std::vector<FusionCase> cases = {
      Convolution("1x1", {1, 24, 9, 7}, {40, 24, 1, 1}, {}),
      Convolution("3x3", {1, 16, 8, 14}, {32, 16, 3, 3}, {{"pads", pad1}}),
      Convolution("3x3 stride 2, odd channels", {2, 5, 9, 8}, {10, 5, 3, 3}, {{"pads", pad1}, {"strides", Ints{2, 2}}}),
      Convolution("7x7 on three channels", {1, 3, 17, 15}, {16, 3, 7, 7},
                  {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}}),
      Convolution("depthwise", {1, 24, 9, 8}, {24, 1, 3, 3}, {{"pads", pad1}, {"group", int64_t{24}}}),
      Convolution("groups", {1, 18, 6, 6}, {12, 6, 3, 3}, {{"pads", pad1}, {"group", int64_t{3}}}),
  };
  for (const char* op : {"MaxPool", "AveragePool"}) {
    G g;
    g.Out(g.Op(op, {g.In({1, 16, 9, 9})}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", pad1}}));
    cases.push_back(FusionCase(op, g));
  }
  EXPECT_EQ(FailuresHere(cases), "");
}

TEST_P(Devices, Movement) {
  std::vector<FusionCase> cases;
  {
    G g;
    g.Out(g.Op("Gather", {g.In({10, 20}), g.In({3, 4}, DType::kI64)}, {{"axis", int64_t{0}}}));
    cases.push_back(FusionCase("gather", g));
  }
  {
    G g;
    g.Out(g.Op("Transpose", {g.In({5, 7, 12})}, {{"perm", Ints{2, 0, 1}}}));
    cases.push_back(FusionCase("transpose", g));
  }
  {
    G g;
    g.Out(g.Op("Exp", {g.Op("Concat", {g.In({3, 5}), g.In({3, 8})}, {{"axis", int64_t{1}}})}));
    cases.push_back(FusionCase("concat", g));
  }
  {
    G g;  // more buffers than OpenCL guarantees as parameters
    std::vector<V> parts;
    for (int i = 0; i < 70; ++i) parts.push_back(g.In({3, 1 + i % 3}));
    g.Out(g.Op("Concat", parts, {{"axis", int64_t{1}}}));
    cases.push_back(FusionCase("concat of 70", g));
  }
  EXPECT_EQ(FailuresHere(cases), "");
}

}  // namespace
}  // namespace fusion::testing
