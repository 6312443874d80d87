// Products of bytes and elements narrower than a lane, against the interpreter: integers agree exactly.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

// Every byte value, in no particular order.
Tensor Bytes(DType dtype, Shape shape, int64_t seed) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.SetInt(i, (i * 73 + seed * 31 + i / 251) % 256 - (dtype == DType::kI8 ? 128 : 0));
  }
  return tensor;
}

// Runs the cases on each device that this machine provides, with plain and with chosen layouts.
std::string IntegerFailures(const std::vector<FusionCase>& cases) {
  std::vector<RunOptions> options;
  for (const DeviceModel& device : {VnniDevice(), Avx512Device(), Avx2Device()}) {
    for (LayoutMode mode : {LayoutMode::kPlain, LayoutMode::kChosen, LayoutMode::kBlocked, LayoutMode::kAxisLast}) {
      options.push_back({device, mode, false});
    }
  }
  std::string text;
  for (const FusionResult& result : RunCases(cases, options)) {
    if (!result.status.ok()) absl::StrAppend(&text, result.name, ": ", std::string(result.status.message()), "\n");
  }
  return text;
}

int64_t MaxElements(const FusionCase& fusion_case) {
  int64_t most = 0;
  for (const ecg::Value& value : fusion_case.graph.values()) most = std::max(most, NumElements(value.type.shape));
  return most;
}

// Does the main step of the case, as one kernel, run on vectors, and with products of bytes if `dot`?
void ExpectVectors(const FusionCase& fusion_case, const DeviceModel& device, bool dot) {
  const std::vector<FusionResult> results = RunCases({fusion_case}, {{device, LayoutMode::kChosen, false}});
  ASSERT_EQ(results.size(), 1u);
  ASSERT_FALSE(results[0].kernels.empty()) << results[0].status;
  ASSERT_GE(MaxElements(fusion_case), 16);
  const movement::Kernel& kernel = results[0].kernels.back().kernel;
  const movement::Step& step = kernel.phases.back().steps.back();
  EXPECT_FALSE(step.Is<movement::ScalarLoops>()) << fusion_case.name << "\n" << movement::Print(kernel);
  const auto* tile = step.As<movement::RegisterTile>();
  EXPECT_EQ(tile != nullptr && tile->dot_axis >= 0, dot) << fusion_case.name << "\n" << movement::Print(kernel);
}

FusionCase MatMul(DType a, DType b, const Shape& a_shape, const Shape& b_shape, bool weight) {
  G g;
  const V x = g.In(Bytes(a, a_shape, 1));
  const Tensor w = Bytes(b, b_shape, 2);
  g.Out(g.Op("MatMulInteger", {x, weight ? g.Const(w) : g.In(w)}));
  return FusionCase(absl::StrCat("MatMulInteger ", DTypeName(a), ShapeToString(a_shape), " ", DTypeName(b),
                                 ShapeToString(b_shape), weight ? " w" : ""),
                    g);
}

FusionCase Conv(DType x, DType w, const Shape& x_shape, const Shape& w_shape, const G::Attrs& attrs,
                int zero_point = 0) {
  G g;
  std::vector<V> inputs = {g.In(Bytes(x, x_shape, 3)), g.Const(Bytes(w, w_shape, 4))};
  if (zero_point != 0) inputs.push_back(g.Scalar(zero_point, x));
  g.Out(g.Op("ConvInteger", inputs, attrs));
  return FusionCase(absl::StrCat("ConvInteger ", DTypeName(x), ShapeToString(x_shape), " ", DTypeName(w),
                                 ShapeToString(w_shape), zero_point != 0 ? " zero point" : ""),
                    g);
}

TEST(CodegenInteger, MatMul) {
  std::vector<FusionCase> cases;
  for (DType a : {DType::kU8, DType::kI8}) {
    for (DType b : {DType::kU8, DType::kI8}) {
      cases.push_back(MatMul(a, b, {21, 64}, {64, 48}, true));
      cases.push_back(MatMul(a, b, {21, 37}, {37, 50}, true));
      cases.push_back(MatMul(a, b, {21, 37}, {37, 50}, false));
    }
  }
  cases.push_back(MatMul(DType::kU8, DType::kI8, {1, 40}, {40, 64}, true));
  cases.push_back(MatMul(DType::kU8, DType::kI8, {3, 5}, {5, 7}, false));
  cases.push_back(MatMul(DType::kU8, DType::kI8, {2, 9, 20}, {2, 20, 33}, false));
  EXPECT_EQ(IntegerFailures(cases), "");
  ExpectVectors(cases[0], VnniDevice(), true);
  ExpectVectors(cases[2], Avx2Device(), true);
}

TEST(CodegenInteger, Convolution) {
  const G::Attrs same = {{"pads", Ints{1, 1, 1, 1}}};
  std::vector<FusionCase> cases;
  for (DType x : {DType::kU8, DType::kI8}) {
    cases.push_back(Conv(x, DType::kI8, {1, 32, 9, 9}, {32, 32, 3, 3}, same));
    cases.push_back(Conv(x, DType::kI8, {2, 10, 7, 8}, {18, 10, 3, 3}, same));
    cases.push_back(Conv(x, DType::kI8, {1, 32, 14, 14}, {48, 32, 1, 1}, {}));
    cases.push_back(
        Conv(x, DType::kI8, {1, 16, 11, 11}, {16, 16, 3, 3}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}));
    cases.push_back(
        Conv(x, DType::kI8, {1, 16, 9, 9}, {16, 1, 3, 3}, {{"group", int64_t{16}}, {"pads", Ints{1, 1, 1, 1}}}));
    cases.push_back(Conv(x, DType::kI8, {1, 16, 9, 9}, {16, 16, 3, 3}, same, 3));
  }
  EXPECT_EQ(IntegerFailures(cases), "");
}

TEST(CodegenInteger, ConvolutionOfABorderedCopy) {
  std::vector<FusionCase> cases;
  for (const int64_t channels : {64, 40}) {
    G g;
    const V x = g.In(Bytes(DType::kU8, {1, channels, 28, 20}, 5)), zero_point = g.Scalar(3, DType::kU8);
    const V padded = g.Op("Pad", {x, g.Ints({0, 0, 1, 1, 0, 0, 1, 1}), zero_point});
    g.Out(g.Op("ConvInteger", {padded, g.Const(Bytes(DType::kI8, {32, channels, 3, 3}, 6)), zero_point}));
    cases.push_back(FusionCase(absl::StrCat("Pad and ConvInteger ", channels), g));
  }
  for (const DeviceModel& device : {VnniDevice(), Avx2Device()}) {
    for (const FusionResult& result : RunCases(cases, {{device, LayoutMode::kChosen, /*split=*/true}})) {
      EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    }
  }
}

// The form in which rewriting leaves quantized graphs: product, scale, bias, the next layer's elements.
TEST(CodegenInteger, ProductsWithRequantization) {
  std::vector<FusionCase> cases;
  {
    G g;
    V x = g.Op("QuantizeLinear", {g.In({1, 16, 9, 9}), g.Scalar(0.02), g.Scalar(0, DType::kU8)});
    for (int layer = 0; layer < 2; ++layer) {
      x = g.Op("ConvInteger", {x, g.Const(Bytes(DType::kI8, {16, 16, 3, 3}, layer))}, {{"pads", Ints{1, 1, 1, 1}}});
      x = g.Op("Mul", {g.Op("Cast", {x}, {{"to", int64_t{1}}}),
                       g.Const(Tensor::From<double>(DType::kF32, {1, 1, 1, 1}, {0.0001}))});
      x = g.Op("QuantizeLinear", {g.Op("Add", {x, g.Weight({1, 16, 1, 1})}), g.Scalar(1), g.Scalar(7, DType::kU8)});
    }
    g.Out(x);
    cases.push_back(FusionCase("two convolutions", g));
  }
  {
    G g;
    const V x = g.In(Bytes(DType::kI8, {21, 64}, 1));
    V y = g.Op("MatMulInteger", {x, g.Const(Bytes(DType::kI8, {64, 50}, 2))});
    y = g.Op("Add", {g.Op("Mul", {g.Op("Cast", {y}, {{"to", int64_t{1}}}), g.Weight({50})}), g.Weight({50})});
    g.Out(g.Op("QuantizeLinear", {y, g.Scalar(1), g.Scalar(-5, DType::kI8)}));
    cases.push_back(FusionCase("product, requantized", g));
  }
  EXPECT_EQ(IntegerFailures(cases), "");
  ExpectVectors(cases[1], VnniDevice(), true);
}

TEST(CodegenInteger, NarrowElements) {
  std::vector<FusionCase> cases;
  for (DType dtype : {DType::kU8, DType::kI8, DType::kU16, DType::kI16}) {
    G g;
    const V q = g.Op("QuantizeLinear", {g.In({3, 50}), g.Scalar(0.013), g.Scalar(9, dtype)});
    g.Out(q);
    g.Out(g.Op("DequantizeLinear", {q, g.Scalar(0.02), g.Scalar(9, dtype)}));
    cases.push_back(FusionCase(absl::StrCat("quantize ", DTypeName(dtype)), g));
    G wraps;
    const V x = wraps.In(Bytes(dtype, {3, 50}, 5)), y = wraps.In(Bytes(dtype, {3, 50}, 9));
    wraps.Out(wraps.Op("Max", {wraps.Op("Sub", {wraps.Op("Mul", {x, y}), x}), wraps.Op("Add", {x, y})}));
    cases.push_back(FusionCase(absl::StrCat("wrapping ", DTypeName(dtype)), wraps));
  }
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const int64_t number = dtype == DType::kF16 ? 10 : 16;
    G g;
    const V x = g.In({5, 50}, dtype), y = g.In({5, 50}, dtype);
    g.Out(g.Op("Tanh", {g.Op("Mul", {g.Op("Add", {x, y}), x})}));
    g.Out(g.Op("Cast", {g.Op("Greater", {x, y})}, {{"to", number}}));
    cases.push_back(FusionCase(absl::StrCat("elementwise ", DTypeName(dtype)), g));
    G reductions;
    const V z = reductions.In({6, 70}, dtype);
    reductions.Out(reductions.Op("Softmax", {z}));
    reductions.Out(reductions.Op("MatMul", {z, reductions.Weight({70, 50}, dtype)}));
    cases.push_back(FusionCase(absl::StrCat("reductions ", DTypeName(dtype)), reductions));
    G conv;
    conv.Out(conv.Op("Conv",
                     {conv.In({1, 16, 9, 9}, dtype), conv.Weight({32, 16, 3, 3}, dtype), conv.Weight({32}, dtype)},
                     {{"pads", Ints{1, 1, 1, 1}}}));
    cases.push_back(FusionCase(absl::StrCat("convolution ", DTypeName(dtype)), conv));
  }
  {
    G g;
    const V x = g.In(Bytes(DType::kI8, {4, 100}, 2));
    const V wide = g.Op("Cast", {x}, {{"to", int64_t{6}}});
    g.Out(g.Op("ReduceSum", {wide, g.Ints({1})}));
    g.Out(g.Op("ReduceMax", {wide, g.Ints({1})}));
    g.Out(g.Op("Cast", {wide}, {{"to", int64_t{9}}}));
    cases.push_back(FusionCase("integer reductions", g));
  }
  EXPECT_EQ(Failures(cases), "");
  ExpectVectors(cases[0], Avx512Device(), false);
  for (const FusionCase& fusion_case : cases) {
    if (fusion_case.name.find("elementwise") == 0) ExpectVectors(fusion_case, Avx512Device(), false);
    if (fusion_case.name.find("convolution") == 0) ExpectVectors(fusion_case, Avx512Device(), false);
  }
}

}  // namespace
}  // namespace fusion::testing
