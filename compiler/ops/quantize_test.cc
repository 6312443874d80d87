// Quantisation and integer products.
#include "compiler/ops/op_testing.h"
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

// 0.5 / (5 / 255) is a tie only once it has been rounded to f32.
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
  // Blocks of 2 along axis 0, the last one shorter.
  const OpCase blocked{"DequantizeLinear",
                       {Ints(DType::kI8, {3, 1}, {1, 2, 3}), F32({2, 1}, {10, 100}), Ints(DType::kI8, {2, 1}, {0, 1})},
                       {{"axis", int64_t{0}}, {"block_size", int64_t{2}}}};
  EXPECT_THAT(Values(RunOp(blocked)), ElementsAre(10, 20, 200));
  OpCase wrong = blocked;
  wrong.inputs[1] = F32({3, 1}, {1, 2, 3});
  wrong.inputs[2] = Absent();
  EXPECT_THAT(std::string(RunOp(wrong).status().message()), HasSubstr("scale has shape [3, 1]"));
  const OpCase float8{"QuantizeLinear", {F32({1}, {1}), F32({}, {1})}, {{"output_dtype", int64_t{17}}}};
  EXPECT_THAT(std::string(RunOp(float8).status().message()), HasSubstr("element type 17"));
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

// Outside the image lies the zero point, whether it is known at compile time or not.
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
