#include "compiler/pipeline/testing/narrow_cases.h"

#include <cmath>
#include <limits>
#include <string>

#include "runtime/base/narrow_float.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;

struct Narrow {
  DType dtype;
  int64_t onnx;
};
constexpr Narrow kFloats[] = {{DType::kF8E4M3FN, 17},   {DType::kF8E4M3FNUZ, 18}, {DType::kF8E5M2, 19},
                              {DType::kF8E5M2FNUZ, 20}, {DType::kF4E2M1, 23},     {DType::kF8E8M0, 24},
                              {DType::kF6E2M3, 27},     {DType::kF6E3M2, 28}};
constexpr Narrow kIntegers[] = {{DType::kU4, 21}, {DType::kI4, 22}, {DType::kU2, 25}, {DType::kI2, 26}};

Tensor AllCodes(DType dtype) {
  Tensor codes(dtype, {4, (int64_t{1} << DTypeBits(dtype)) / 4});
  for (int64_t i = 0; i < codes.num_elements(); ++i) codes.mutable_as<uint8_t>()[i] = static_cast<uint8_t>(i);
  return codes;
}

// Special values; every code's value and the middle between it and the next, with the neighbours of both; and values
// above the largest. No subnormals of f32, which may count as zero.
Tensor Edges(DType dtype) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> edges = {0.0f, -0.0f, inf, -inf, std::nanf(""), 3e38f, -3e38f, 1e-30f, -1e-30f, 1e6f, 0x1.8p127f};
  const float largest = LargestNarrow(dtype);
  for (int code = 0; code < 1 << DTypeBits(dtype); ++code) {
    const float value = NarrowToFloat(dtype, static_cast<uint8_t>(code));
    const float next = NarrowToFloat(dtype, static_cast<uint8_t>(code + 1));
    if (!std::isfinite(value)) continue;
    const float middle = std::isfinite(next) ? value / 2 + next / 2 : value + value / 32;
    for (float at : {value, middle}) {
      for (float edge : {at, std::nextafter(at, inf), std::nextafter(at, -inf)}) {
        if (std::fabs(edge) < std::numeric_limits<float>::min()) continue;
        edges.push_back(edge);
        if (dtype != DType::kF8E8M0) edges.push_back(-edge);
      }
    }
  }
  for (float factor : {1.03f, 1.04f, 1.0714285f, 1.1f}) edges.push_back(largest * factor);
  return Tensor::From<float>(DType::kF32, {static_cast<int64_t>(edges.size())}, edges);
}

FusionCase Floats(const Narrow& type) {
  G g;
  const V codes = g.In(AllCodes(type.dtype)), edges = g.In(Edges(type.dtype));
  for (int64_t to : {1, 10, 16, 11}) g.Out(g.Op("Cast", {codes}, {{"to", to}}));
  g.Out(g.Op("Transpose", {codes}, {{"perm", std::vector<int64_t>{1, 0}}}));
  g.Out(g.Op("Concat", {codes, codes}, {{"axis", int64_t{1}}}));
  for (int64_t saturate : {0, 1}) {
    g.Out(g.Op("Cast", {edges}, {{"to", type.onnx}, {"saturate", saturate}}));
  }
  if (type.dtype == DType::kF8E8M0) {
    for (const char* mode : {"up", "down", "nearest"}) {
      for (int64_t saturate : {0, 1}) {
        g.Out(g.Op("Cast", {edges}, {{"to", type.onnx}, {"saturate", saturate}, {"round_mode", std::string(mode)}}));
      }
    }
    return FusionCase(DTypeName(type.dtype), g);
  }
  // The value is rounded in between, although it is not stored there.
  g.Out(g.Op("Cast", {g.Op("Cast", {edges}, {{"to", type.onnx}})}, {{"to", int64_t{1}}}));
  const V scale = g.Const(Tensor::From<double>(DType::kF32, {4}, {0.5, 1.25, 3, 0.01}));
  const V x = g.In({6, 4}), q = g.Op("QuantizeLinear", {x, scale}, {{"output_dtype", type.onnx}});
  g.Out(q);
  g.Out(g.Op("DequantizeLinear", {q, scale}));
  g.Out(g.Op("DequantizeLinear", {codes, g.Scalar(0.5)}, {{"output_dtype", int64_t{10}}}));
  return FusionCase(DTypeName(type.dtype), g);
}

FusionCase Integers(const Narrow& type) {
  G g;
  Tensor values(type.dtype, {4, (int64_t{1} << DTypeBits(type.dtype)) / 4});
  for (int64_t i = 0; i < values.num_elements(); ++i) values.SetInt(i, i);
  Tensor wide(DType::kI32, {5, 40});
  for (int64_t i = 0; i < wide.num_elements(); ++i) wide.SetInt(i, i - 100);
  Tensor reals(DType::kF32, {5, 40});
  for (int64_t i = 0; i < reals.num_elements(); ++i) reals.SetDouble(i, static_cast<double>(i - 100) / 4);
  const V x = g.In(values), integers = g.In(wide), floats = g.In(reals);
  for (int64_t to : {1, 3, 2, 7, 10}) g.Out(g.Op("Cast", {x}, {{"to", to}}));
  g.Out(g.Op("Cast", {integers}, {{"to", type.onnx}}));
  g.Out(g.Op("Cast", {floats}, {{"to", type.onnx}}));
  g.Out(g.Op("Cast", {g.Op("Cast", {integers}, {{"to", type.onnx}})}, {{"to", int64_t{6}}}));
  g.Out(g.Op("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}}));
  const V scale = g.Scalar(0.75), zero = g.Scalar(1, type.dtype);
  const V q = g.Op("QuantizeLinear", {floats, scale, zero});
  g.Out(q);
  g.Out(g.Op("DequantizeLinear", {q, scale, zero}));
  // A scale for each 16 weights of a row, as in language models.
  const G::Attrs fusion_blocks = {{"axis", int64_t{1}}, {"block_size", int64_t{16}}};
  const V scales = g.In({5, 3});
  g.Out(g.Op("DequantizeLinear", {g.In({5, 40}, type.dtype), scales}, fusion_blocks));
  return FusionCase(DTypeName(type.dtype), g);
}

}  // namespace

std::vector<FusionCase> NarrowCases() {
  std::vector<FusionCase> cases;
  for (const Narrow& type : kFloats) cases.push_back(Floats(type));
  for (const Narrow& type : kIntegers) cases.push_back(Integers(type));
  return cases;
}

}  // namespace fusion::testing
