#include "runtime/base/narrow_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/tensor.h"

namespace fusion {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const DType kSigned[] = {DType::kF8E4M3FN,   DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
                         DType::kF6E2M3,     DType::kF6E3M2,     DType::kF4E2M1};

// Computes the value of a code as the formats' papers define it, in arithmetic instead of bits.
double Definition(DType dtype, int code) {
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  switch (dtype) {
    case DType::kF8E4M3FN:
      if ((code & 0x7f) == 0x7f) return NAN;
      exponent_bits = 4, mantissa_bits = 3, bias = 7;
      break;
    case DType::kF8E4M3FNUZ:
      if (code == 0x80) return NAN;
      exponent_bits = 4, mantissa_bits = 3, bias = 8;
      break;
    case DType::kF8E5M2:
      if ((code & 0x7f) == 0x7c) return code < 0x80 ? kInf : -kInf;
      if ((code & 0x7f) > 0x7c) return NAN;
      exponent_bits = 5, mantissa_bits = 2, bias = 15;
      break;
    case DType::kF8E5M2FNUZ:
      if (code == 0x80) return NAN;
      exponent_bits = 5, mantissa_bits = 2, bias = 16;
      break;
    case DType::kF6E2M3:
      exponent_bits = 2, mantissa_bits = 3, bias = 1;
      break;
    case DType::kF6E3M2:
      exponent_bits = 3, mantissa_bits = 2, bias = 3;
      break;
    default:
      exponent_bits = 2, mantissa_bits = 1, bias = 1;
      break;
  }
  const int mantissas = 1 << mantissa_bits, exponents = 1 << exponent_bits;
  const int mantissa = code % mantissas, exponent = code / mantissas % exponents;
  const double sign = code / (mantissas * exponents) % 2 == 0 ? 1 : -1;
  if (exponent == 0) return sign * mantissa / mantissas * std::pow(2.0, 1 - bias);
  return sign * (1 + static_cast<double>(mantissa) / mantissas) * std::pow(2.0, exponent - bias);
}

TEST(NarrowFloatTest, EveryCodeHasItsValue) {
  for (DType dtype : kSigned) {
    for (int code = 0; code < 1 << DTypeBits(dtype); ++code) {
      const double want = Definition(dtype, code);
      const float value = NarrowToFloat(dtype, static_cast<uint8_t>(code));
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(value)) << DTypeName(dtype) << " " << code;
        continue;
      }
      EXPECT_EQ(value, want) << DTypeName(dtype) << " " << code;
      EXPECT_EQ(std::signbit(value), std::signbit(want)) << DTypeName(dtype) << " " << code;
    }
  }
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(NarrowToFloat(DType::kF8E8M0, static_cast<uint8_t>(code)), std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(NarrowToFloat(DType::kF8E8M0, 255)));
}

TEST(NarrowFloatTest, EveryValueKeepsItsCode) {
  for (int d = static_cast<int>(DType::kF8E4M3FN); d < kNumDTypes; ++d) {
    const DType dtype = static_cast<DType>(d);
    for (int code = 0; code < 1 << DTypeBits(dtype); ++code) {
      const float value = NarrowToFloat(dtype, static_cast<uint8_t>(code));
      const uint8_t again = FloatToNarrow(dtype, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(NarrowToFloat(dtype, again))) << DTypeName(dtype) << " " << code;
      } else {
        EXPECT_EQ(again, code) << DTypeName(dtype);
      }
    }
  }
}

// Between two neighbours a value just below the middle rounds down, one just above it rounds up, and the middle rounds
// to the even code. The codes of one sign are in the order of their values.
TEST(NarrowFloatTest, RoundsToNearestTiesToEven) {
  for (DType dtype : kSigned) {
    const int sign = 1 << (DTypeBits(dtype) - 1);
    const int last = NarrowFormatOf(dtype).max_code;
    for (int code = 0; code < last; ++code) {
      const float low = NarrowToFloat(dtype, static_cast<uint8_t>(code));
      const float high = NarrowToFloat(dtype, static_cast<uint8_t>(code + 1));
      const float middle = (low + high) / 2;  // exact: one bit more than the format's
      const float below = std::nextafter(middle, 0.0f), above = std::nextafter(middle, kInf);
      const int even = code % 2 == 0 ? code : code + 1;
      EXPECT_EQ(FloatToNarrow(dtype, below), code) << DTypeName(dtype);
      EXPECT_EQ(FloatToNarrow(dtype, middle), even) << DTypeName(dtype);
      EXPECT_EQ(FloatToNarrow(dtype, above), code + 1) << DTypeName(dtype);
      const auto negative = [&](int of) { return of == 0 && NarrowFormatOf(dtype).one_zero ? 0 : of | sign; };
      EXPECT_EQ(FloatToNarrow(dtype, -below), negative(code)) << DTypeName(dtype);
      EXPECT_EQ(FloatToNarrow(dtype, -middle), negative(even)) << DTypeName(dtype);
      EXPECT_EQ(FloatToNarrow(dtype, -above), negative(code + 1)) << DTypeName(dtype);
    }
  }
}

// The codes that ml_dtypes, which ONNX's reference uses, gives for 0, -0, the infinities, the largest value, the
// largest value that still rounds to it, the first that does not, and the smallest subnormal of f32.
TEST(NarrowFloatTest, EdgesAreThoseOfTheReference) {
  struct Edge {
    DType dtype;
    float largest, last, first_past;  // `last` rounds to `largest`
    int zero, minus_zero, inf, minus_inf, max, min, past, minus_past;
  };
  const Edge edges[] = {
      {DType::kF8E4M3FN, 448, 464, 464.0001f, 0, 0x80, 0x7f, 0xff, 0x7e, 0xfe, 0x7f, 0xff},
      {DType::kF8E4M3FNUZ, 240, 247.9999f, 248, 0, 0, 0x80, 0x80, 0x7f, 0xff, 0x80, 0x80},
      {DType::kF8E5M2, 57344, 61439.99f, 61440, 0, 0x80, 0x7c, 0xfc, 0x7b, 0xfb, 0x7c, 0xfc},
      {DType::kF8E5M2FNUZ, 57344, 61439.99f, 61440, 0, 0, 0x80, 0x80, 0x7f, 0xff, 0x80, 0x80},
      {DType::kF6E2M3, 7.5f, 1e9f, 1e30f, 0, 0x20, 0x1f, 0x3f, 0x1f, 0x3f, 0x1f, 0x3f},
      {DType::kF6E3M2, 28, 1e9f, 1e30f, 0, 0x20, 0x1f, 0x3f, 0x1f, 0x3f, 0x1f, 0x3f},
      {DType::kF4E2M1, 6, 1e9f, 1e30f, 0, 0x8, 0x7, 0xf, 0x7, 0xf, 0x7, 0xf},
  };
  for (const Edge& edge : edges) {
    const auto code = [&](float value) { return static_cast<int>(FloatToNarrow(edge.dtype, value)); };
    EXPECT_EQ(LargestNarrow(edge.dtype), edge.largest) << DTypeName(edge.dtype);
    EXPECT_EQ(code(0.0f), edge.zero) << DTypeName(edge.dtype);
    EXPECT_EQ(code(-0.0f), edge.minus_zero) << DTypeName(edge.dtype);
    EXPECT_EQ(code(1e-45f), edge.zero) << DTypeName(edge.dtype);
    EXPECT_EQ(code(-1e-45f), edge.minus_zero) << DTypeName(edge.dtype);
    EXPECT_EQ(code(kInf), edge.inf) << DTypeName(edge.dtype);
    EXPECT_EQ(code(-kInf), edge.minus_inf) << DTypeName(edge.dtype);
    EXPECT_EQ(code(edge.largest), edge.max) << DTypeName(edge.dtype);
    EXPECT_EQ(code(edge.last), edge.max) << DTypeName(edge.dtype);
    EXPECT_EQ(code(-edge.last), edge.min) << DTypeName(edge.dtype);
    EXPECT_EQ(code(edge.first_past), edge.past) << DTypeName(edge.dtype);
    EXPECT_EQ(code(-edge.first_past), edge.minus_past) << DTypeName(edge.dtype);
    EXPECT_EQ(code(3e38f), edge.past) << DTypeName(edge.dtype);
    const float of_nan = NarrowToFloat(edge.dtype, FloatToNarrow(edge.dtype, kNan));
    if (DTypeBits(edge.dtype) == 8) {
      EXPECT_TRUE(std::isnan(of_nan)) << DTypeName(edge.dtype);
    } else {
      EXPECT_EQ(of_nan, 0) << DTypeName(edge.dtype);
    }
  }
}

TEST(NarrowFloatTest, PowersOfTwoRoundTiesUp) {
  const auto code = [](float value) { return static_cast<int>(FloatToNarrow(DType::kF8E8M0, value)); };
  EXPECT_EQ(code(1), 127);
  EXPECT_EQ(code(1.4999f), 127);
  EXPECT_EQ(code(1.5f), 128);
  EXPECT_EQ(code(-3), 129);
  EXPECT_EQ(code(0), 0);
  EXPECT_EQ(code(0x1p-127f), 0);
  EXPECT_EQ(code(0x1.7p-127f), 0);
  EXPECT_EQ(code(0x1.8p-127f), 1);
  EXPECT_EQ(code(0x1.7p127f), 254);
  EXPECT_EQ(code(0x1.8p127f), 255);
  EXPECT_EQ(code(kInf), 255);
  EXPECT_EQ(code(kNan), 255);
  EXPECT_EQ(LargestNarrow(DType::kF8E8M0), 0x1p127f);
}

TEST(NarrowIntTest, KeepsTheLowBits) {
  for (int64_t value = -300; value <= 300; ++value) {
    EXPECT_EQ(WrapNarrowInt(DType::kU4, value), value & 15);
    EXPECT_EQ(WrapNarrowInt(DType::kU2, value), value & 3);
    EXPECT_EQ(WrapNarrowInt(DType::kI4, value), ((value + 8) & 15) - 8);
    EXPECT_EQ(WrapNarrowInt(DType::kI2, value), ((value + 2) & 3) - 2);
  }
}

TEST(NarrowTensorTest, GetsAndSets) {
  const Tensor ints = Tensor::From<int64_t>(DType::kI4, {4}, {7, 8, -8, -9});
  EXPECT_EQ(ints.size_bytes(), 4);
  EXPECT_EQ(ints.GetInt(0), 7);
  EXPECT_EQ(ints.GetInt(1), -8);
  EXPECT_EQ(ints.GetDouble(2), -8);
  EXPECT_EQ(ints.GetInt(3), 7);
  const Tensor floats = Tensor::From<double>(DType::kF8E4M3FN, {3}, {1, 0.3, -1000});
  EXPECT_EQ(floats.as<uint8_t>()[0], 0x38);
  EXPECT_EQ(floats.GetDouble(1), 0.3125);
  EXPECT_EQ(floats.GetInt(0), 1);
  EXPECT_TRUE(std::isnan(floats.GetDouble(2)));
}

}  // namespace
}  // namespace fusion
