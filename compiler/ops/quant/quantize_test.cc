// Tests of quantization and integer products.
#include "compiler/ops/registry/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Tensor Ints(DType dtype, const Shape& shape, const std::vector<int>& values) {
  return Tensor::From<int>(dtype, shape, values);
}

TEST(Quantize, SaturatesAndRoundsToEven) {
  const Tensor zero = Tensor::From<int>(DType::kU8, {}, {128});
  EXPECT_THAT(Values(RunOp({"QuantizeLinear", {F32({5}, {0, 1, 3, 1000, -254}), F32({}, {2}), zero}})),
              ElementsAre(128, 128, 130, 255, 1));
  const Tensor q = Tensor::From<int>(DType::kI8, {1, 2, 1}, {-3, 5});
  const OpCase per_axis{"DequantizeLinear", {q, F32({2}, {2, 0.5})}};
  EXPECT_THAT(Values(RunOp(per_axis)), ElementsAre(-6, 2.5));
}

TEST(Quantize, Dynamic) {
  const auto result = RunOp({"DynamicQuantizeLinear", {F32({3}, {0, 2, -0.55})}, {}, {}, 3});
  EXPECT_THAT(Values(result, 1), Pointwise(FloatEq(), {2.55f / 255}));
  EXPECT_THAT(Values(result, 2), ElementsAre(55));
  EXPECT_THAT(Values(result), ElementsAre(55, 255, 0));
}

// 0.5 / (5 / 255) is a tie only after it has been rounded to f32.
TEST(Quantize, TiesAreThoseOfTheF32Quotient) {
  EXPECT_THAT(Values(RunOp({"DynamicQuantizeLinear", {F32({3}, {0.5, 2, -3})}, {}, {}, 3})), ElementsAre(179, 255, 0));
}

TEST(Quantize, MatMulInteger) {
  const Tensor a = Tensor::From<int>(DType::kU8, {1, 2}, {11, 7}), b = Tensor::From<int>(DType::kI8, {2, 1}, {1, -4});
  EXPECT_THAT(Values(RunOp({"MatMulInteger", {a, b, Tensor::From<int>(DType::kU8, {}, {12})}})), ElementsAre(19));
}

TEST(Quantize, SixteenBitsAndBlocks) {
  EXPECT_THAT(
      Values(RunOp({"QuantizeLinear", {F32({3}, {-1e6, 2.5, 1e6}), F32({}, {1})}, {{"output_dtype", int64_t{5}}}})),
      ElementsAre(-32768, 2, 32767));
  // Quantization blocks of 2 along axis 0; the last one is shorter.
  const OpCase blocked{"DequantizeLinear",
                       {Ints(DType::kI8, {3, 1}, {1, 2, 3}), F32({2, 1}, {10, 100}), Ints(DType::kI8, {2, 1}, {0, 1})},
                       {{"axis", int64_t{0}}, {"block_size", int64_t{2}}}};
  EXPECT_THAT(Values(RunOp(blocked)), ElementsAre(10, 20, 200));
  OpCase wrong = blocked;
  wrong.inputs[1] = F32({3, 1}, {1, 2, 3});
  wrong.inputs[2] = Absent();
  EXPECT_THAT(std::string(RunOp(wrong).status().message()), HasSubstr("scale has shape [3, 1]"));
  const OpCase text{"QuantizeLinear", {F32({1}, {1}), F32({}, {1})}, {{"output_dtype", int64_t{8}}}};
  EXPECT_THAT(std::string(RunOp(text).status().message()), HasSubstr("element type 8"));
}

TEST(Quantize, NarrowTypes) {
  const Tensor x = F32({6}, {-20, -2.5, 0.7, 3.5, 7, 1000}), one = F32({}, {1}), half = F32({}, {0.5});
  const auto to = [&](int64_t type, const Tensor& scale) {
    return Values(RunOp({"QuantizeLinear", {x, scale}, {{"output_dtype", type}}}));
  };
  EXPECT_THAT(to(21, one), ElementsAre(0, 0, 1, 4, 7, 15));           // u4
  EXPECT_THAT(to(22, one), ElementsAre(-8, -2, 1, 4, 7, 7));          // i4
  EXPECT_THAT(to(25, one), ElementsAre(0, 0, 1, 3, 3, 3));            // u2
  EXPECT_THAT(to(26, one), ElementsAre(-2, -2, 1, 1, 1, 1));          // i2
  EXPECT_THAT(to(17, half), ElementsAre(-40, -5, 1.375, 7, 14, 448));  // f8e4m3fn: 1.4 rounds to 1.375
  EXPECT_THAT(to(23, one), ElementsAre(-6, -2, 0.5, 4, 6, 6));        // f4e2m1, ties to even
  const OpCase open{
      "QuantizeLinear", {F32({2}, {500, -500}), one}, {{"output_dtype", int64_t{19}}, {"saturate", int64_t{0}}}};
  EXPECT_THAT(Values(RunOp(open)), ElementsAre(512, -512));
  // A zero point of 0 keeps the sign of zero.
  const auto zero = RunOp({"QuantizeLinear", {F32({1}, {-0.0}), one, Tensor::From<double>(DType::kF8E4M3FN, {}, {0})}});
  ASSERT_TRUE(zero.ok()) << zero.status();
  EXPECT_EQ((*zero)[0].as<uint8_t>()[0], 0x80);
  EXPECT_THAT(std::string(RunOp({"QuantizeLinear", {x, one}, {{"output_dtype", int64_t{24}}}}).status().message()),
              HasSubstr("not f8e8m0"));
}

TEST(Quantize, PrecisionIsThatOfTheDivision) {
  // 2049 / 819.5 is a little above 2.5. As halves the operands are 2048 and 819.5, and their quotient rounds to 2.5, a
  // tie.
  const Tensor x = F32({1}, {2049}), scale = F32({}, {819.5});
  EXPECT_THAT(Values(RunOp({"QuantizeLinear", {x, scale}})), ElementsAre(3));
  EXPECT_THAT(Values(RunOp({"QuantizeLinear", {x, scale}, {{"precision", int64_t{10}}}})), ElementsAre(2));
  const OpCase wrong{"QuantizeLinear", {x, scale}, {{"precision", int64_t{17}}}};
  EXPECT_THAT(std::string(RunOp(wrong).status().message()), HasSubstr("precision"));
}

TEST(Dequantize, NarrowTypes) {
  const Tensor ints = Ints(DType::kI4, {4}, {-8, -1, 0, 7}), scale = F32({}, {0.5});
  EXPECT_THAT(Values(RunOp({"DequantizeLinear", {ints, scale, Ints(DType::kI4, {}, {1})}})),
              ElementsAre(-4.5, -1, -0.5, 3));
  const Tensor floats = Tensor::From<double>(DType::kF8E5M2, {3}, {-3, 0.25, 57344});
  EXPECT_THAT(Values(RunOp({"DequantizeLinear", {floats, scale}})), ElementsAre(-1.5, 0.125, 28672));
  const Tensor power = Tensor::From<double>(DType::kF8E8M0, {}, {4});
  const OpCase powers{"DequantizeLinear", {floats, power}, {{"output_dtype", int64_t{1}}}};
  EXPECT_THAT(Values(RunOp(powers)), ElementsAre(-12, 1, 229376));
  EXPECT_THAT(std::string(RunOp({"DequantizeLinear", {floats, power}}).status().message()), HasSubstr("output_dtype"));
}

TEST(Quantize, DynamicRangeOfZerosHasNoNan) {
  const auto result = RunOp({"DynamicQuantizeLinear", {F32({2}, {0, 0})}, {}, {}, 3});
  EXPECT_THAT(Values(result), ElementsAre(0, 0));
  EXPECT_THAT(Values(result, 1), ElementsAre(1));
}

TEST(IntegerProducts, MatMulZeroPointsPerRowAndColumn) {
  const OpCase matmul{"MatMulInteger",
                      {Ints(DType::kU8, {2, 2}, {1, 2, 3, 4}), Ints(DType::kU8, {2, 2}, {5, 6, 7, 8}),
                       Ints(DType::kU8, {2}, {1, 2}), Ints(DType::kU8, {1, 2}, {5, 6})}};
  // [[0, 1], [1, 2]] · [[0, 0], [2, 2]]
  EXPECT_THAT(Values(RunOp(matmul)), ElementsAre(2, 2, 4, 4));
  const OpCase vectors{"MatMulInteger", {Ints(DType::kI8, {2}, {1, -2}), Ints(DType::kI8, {2}, {3, 4})}};
  EXPECT_THAT(Values(RunOp(vectors)), ElementsAre(-5));
  OpCase wrong = vectors;
  wrong.inputs[1] = F32({2}, {3, 4});
  EXPECT_THAT(std::string(RunOp(wrong).status().message()), HasSubstr("input 1 is f32; i8 or u8 is required"));
}

// Positions outside the image hold the zero point, whether it is known at compile time or not.
TEST(IntegerProducts, ConvolutionPadsWithItsZeroPoint) {
  OpCase conv{"ConvInteger",
              {Ints(DType::kU8, {1, 1, 2, 2}, {2, 3, 4, 5}), Ints(DType::kI8, {1, 1, 2, 2}, {1, 1, 1, 1}),
               Ints(DType::kU8, {}, {1})},
              {{"pads", std::vector<int64_t>{0, 0, 1, 1}}}};
  EXPECT_THAT(Values(RunOp(conv)), ElementsAre(10, 6, 7, 4));
  conv.constants = {1, 2};
  EXPECT_THAT(Values(RunOp(conv)), ElementsAre(10, 6, 7, 4));
  conv.inputs.push_back(Ints(DType::kI8, {1}, {2}));
  EXPECT_THAT(Values(RunOp(conv)), ElementsAre(-10, -6, -7, -4));
}

}  // namespace
}  // namespace fusion::ops
