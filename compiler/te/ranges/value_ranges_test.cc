#include "compiler/te/ranges/value_ranges.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

ValueRange Symbol(int symbol, double hi) {
  ValueRange value_range;
  value_range.lo = 0;
  value_range.hi = hi;
  value_range.linear = true;
  value_range.terms[symbol] = 1;
  return value_range;
}

std::vector<std::optional<TensorRanges>> Evaluate(const std::string& text,
                                                  const std::vector<std::optional<TensorRanges>>& inputs) {
  const auto program = Parse(text).value();
  return InferRanges(program, inputs);
}

TEST(ValueRanges, SumsOfSymbols) {
  // (4·n + 8) / 4 - n = 2 for every n.
  const auto result = Evaluate(R"(te p(%0: i64[]) {
  %1[]: i64 = div(add(mul(%0[], 4:i64), 8:i64), 4:i64)
  %2[]: i64 = sub(%1[], %0[])
  return %1, %2
})",
                               {TensorRanges{Symbol(7, 10)}});
  EXPECT_TRUE((*result[0])[0].linear);
  EXPECT_EQ((*result[0])[0].constant, 2);
  EXPECT_EQ((*result[0])[0].terms, (std::map<int, int64_t>{{7, 1}}));
  EXPECT_EQ((*result[0])[0].hi, 12);
  EXPECT_TRUE((*result[1])[0].IsPoint());
  EXPECT_EQ((*result[1])[0].lo, 2);
}

TEST(ValueRanges, RangesThroughMinimaRoundingAndReductions) {
  const auto result = Evaluate(R"(te p(%0: i64[2]) {
  %1[i0<2]: i64 = min(%0[i0], 5:i64)
  %2[i1<2]: f32 = floor(mul(cast.f32(%0[i1]), 0.5))
  %3[]: i64 = prod.i64(i2<2) %1[i2]
  %4[]: bool = lt(%1[0], 6:i64)
  return %1, %2, %3, %4
})",
                               {TensorRanges{Symbol(1, 1000), ValueRange::Exactly(3, true)}});
  EXPECT_EQ((*result[0])[0].hi, 5);
  EXPECT_EQ((*result[0])[1].lo, 3);
  EXPECT_EQ((*result[1])[0].hi, 500);
  EXPECT_EQ((*result[1])[1].lo, 1);
  EXPECT_EQ((*result[2])[0].hi, 15);
  EXPECT_EQ((*result[3])[0].lo, 1);  // always true
}

TEST(ValueRanges, NothingOfWhatIsNotKnown) {
  const auto result = Evaluate(R"(te p(%0: i64[], %1: i64[]) {
  %2[]: i64 = add(%0[], %1[])
  %3[i0<100]: i64 = index(i0)
  %4[]: i8 = cast.i8(%1[])
  return %2, %3, %4
})",
                               {std::nullopt, TensorRanges{Symbol(1, 1000)}});
  EXPECT_FALSE((*result[0])[0].linear);
  ASSERT_EQ(result[1]->size(), 1);  // one range for all of it
  EXPECT_EQ((*result[1])[0].hi, 99);
  EXPECT_LE((*result[2])[0].lo, -128);  // it may wrap
  EXPECT_GE((*result[2])[0].hi, 127);
}

TEST(ValueRanges, OneRangeOfWhatIsNotSmall) {
  // Boxes are clipped to an image; the results are their bounds after each box grows by half its size, and one box as
  // integers.
  const auto result = Evaluate(R"(te p(%0: f32[100, 4], %1: i64[]) {
  %2[i0<100, i1<4]: f32 = min(max(%0[i0, i1], 0.0), 800.0)
  %3[i2<100]: f32 = mul(sub(%2[i2, 2], %2[i2, 0]), 0.5)
  %4[i3<100, i4<4]: f32 = sub(%2[i3, i4], mul(%3[i3], 0.5))
  %5[i5<100, i6<4]: i64 = cast.i64(%4[i5, i6])
  %6[]: i64 = max(min(%1[], 99:i64), 0:i64)
  %7[i7<4]: i64 = %5[%6[]{0..99}, i7]
  return %4, %5, %7
})",
                               {std::nullopt, std::nullopt});
  ASSERT_EQ(result[0]->size(), 1);
  EXPECT_EQ((*result[0])[0].lo, -200);
  EXPECT_EQ((*result[0])[0].hi, 1000);
  ASSERT_EQ(result[1]->size(), 1);
  ASSERT_EQ(result[2]->size(), 4);
  EXPECT_EQ((*result[2])[3].lo, -200);
  EXPECT_EQ((*result[2])[3].hi, 1000);
  EXPECT_FALSE((*result[2])[3].linear);
}

TEST(ValueRanges, ReductionsOfWhatIsNotSmall) {
  const auto result = Evaluate(R"(te p(%0: i64[100]) {
  %1[]: i64 = sum.i64(i0<100) min(max(%0[i0], 0:i64), 3:i64)
  %2[i1<2]: i64 = max.i64(i2<100000) min(max(%0[i2%100], index(i1)), 3:i64)
  %3[]: i64 = prod.i64(i3<100000) min(max(%0[i3%100], 0:i64), 1:i64)
  return %1, %2, %3
})",
                               {std::nullopt});
  EXPECT_EQ((*result[0])[0].lo, 0);
  EXPECT_EQ((*result[0])[0].hi, 300);
  ASSERT_EQ(result[1]->size(), 2);
  EXPECT_EQ((*result[1])[1].lo, 0);
  EXPECT_EQ((*result[1])[1].hi, 3);
  EXPECT_GT((*result[2])[0].hi, 1e18);
}

TEST(ValueRanges, PiecesByRangesOfAnAxis) {
  // A load reads only the part of its tensor that its indices reach, and its pad outside.
  const auto result = Evaluate(
      R"(te p(%0: i64[3]) {
  %1[i0<100]: i64 = %0[i0//50]
  %2[i1<100]: i64 = if i1 < 100 then %0[i1%2] else 9:i64
  %3[i2<100]: i64 = if i2 < 50 then %0[0] else index(i2)
  %4[i3<100]: i64 = %0[i3 + 1]?-7:i64
  %5[i4<100]: i64 = if i4 < 3 then %0[i4] else %3[i4 - 3]
  return %1, %2, %3, %4, %5
})",
      {TensorRanges{ValueRange::Exactly(1, true), ValueRange::Exactly(1, true), ValueRange::Exactly(5, true)}});
  EXPECT_TRUE((*result[0])[0].IsPoint());
  EXPECT_TRUE((*result[1])[0].IsPoint());
  EXPECT_EQ((*result[2])[0].hi, 99);
  EXPECT_EQ((*result[3])[0].lo, -7);
  EXPECT_EQ((*result[3])[0].hi, 5);
  EXPECT_EQ((*result[4])[0].lo, 0);
  EXPECT_EQ((*result[4])[0].hi, 99);
}

TEST(ValueRanges, ConstantsOfManyElements) {
  std::vector<int64_t> values(1000, 4);
  const auto equal = RangesOfConstant(Tensor::From(DType::kI64, {1000}, values));
  ASSERT_EQ(equal->size(), 1);
  EXPECT_TRUE((*equal)[0].IsPoint());
  values[500] = -3;
  const auto range = RangesOfConstant(Tensor::From(DType::kI64, {1000}, values));
  EXPECT_EQ((*range)[0].lo, -3);
  EXPECT_EQ((*range)[0].hi, 4);
  EXPECT_FALSE(RangesOfConstant(Tensor(DType::kI64, {kMaxScannedElements + 1})).has_value());
}

ValueRange RangeOfBody(const std::string& body, const ValueRange& x) {
  const auto program = Parse("te p(%0: f32[100]) {\n  %1[i0<100]: f32 = " + body + "\n  return %1\n}").value();
  return (*InferRanges(program, {TensorRanges{x}}, Detail::kRanges)[0])[0];
}

ValueRange Between(double lo, double hi) {
  ValueRange value_range;
  value_range.lo = lo;
  value_range.hi = hi;
  value_range.number = true;
  return value_range;
}

TEST(ValueRanges, SignsOfWhatMayBeAnything) {
  const ValueRange anything;
  EXPECT_EQ(RangeOfBody("mul(%0[i0], %0[i0])", anything).lo, 0);
  EXPECT_FALSE(RangeOfBody("mul(%0[i0], %0[i0])", anything).number);
  EXPECT_LT(RangeOfBody("mul(%0[i0], %0[i0%50])", anything).lo, 0);
  EXPECT_EQ(RangeOfBody("exp(%0[i0])", anything).lo, 0);
  EXPECT_EQ(RangeOfBody("abs(%0[i0])", anything).lo, 0);
  EXPECT_EQ(RangeOfBody("sqrt(%0[i0])", anything).lo, 0);
  EXPECT_LE(RangeOfBody("tanh(%0[i0])", anything).hi, 1.001);
  const ValueRange sigmoid = RangeOfBody("div(1.0, add(1.0, exp(neg(%0[i0]))))", anything);
  EXPECT_EQ(sigmoid.lo, 0);
  EXPECT_EQ(sigmoid.hi, 1);
  EXPECT_FALSE(sigmoid.number);
  EXPECT_TRUE(RangeOfBody("div(1.0, add(1.0, exp(neg(%0[i0]))))", Between(-5, 5)).number);
  EXPECT_GT(RangeOfBody("add(max(%0[i0], 0.0), 0.001)", anything).lo, 0);
}

TEST(ValueRanges, SignsOfZeros) {
  const ValueRange minus_three = ValueRange::Exactly(-3, false);
  ValueRange weights = Between(-2, 8);
  weights.least = 0.25;
  weights.negative_zero = false;
  EXPECT_TRUE(RangeOfBody("mul(%0[i0], 0.0)", minus_three).negative_zero);
  EXPECT_FALSE(RangeOfBody("mul(%0[i0], 0.0)", Between(1, 3)).negative_zero);
  EXPECT_TRUE(RangeOfBody("mul(mul(%0[i0], 1e-25), 1e-25)", minus_three).negative_zero) << "too small a number";
  EXPECT_FALSE(RangeOfBody("max(%0[i0], -1.0)", weights).negative_zero);
  EXPECT_TRUE(RangeOfBody("max(%0[i0], 0.0)", Between(-1, 1)).negative_zero);
  // One over such a zero is an infinity below zero.
  EXPECT_EQ(RangeOfBody("div(1.0, mul(%0[i0], 0.0))", minus_three).lo, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(RangeOfBody("div(1.0, mul(mul(%0[i0], 1e-25), 1e-25))", minus_three).lo,
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(RangeOfBody("div(1.0, mul(%0[i0], 0.0))", Between(1, 3)).lo, 0);
}

TEST(ValueRanges, NaNComesOfInfinitiesAndOfDomains) {
  EXPECT_TRUE(RangeOfBody("sub(%0[i0], %0[i0])", Between(-3e38, 3e38)).number);
  EXPECT_FALSE(RangeOfBody("mul(sub(%0[i0], mul(%0[i0], 2.0)), 0.0)", Between(-3e38, 3e38)).number);
  EXPECT_TRUE(RangeOfBody("log(%0[i0])", Between(0, 1)).number);
  EXPECT_FALSE(RangeOfBody("log(%0[i0])", Between(-1, 1)).number);
  EXPECT_FALSE(RangeOfBody("sqrt(%0[i0])", Between(-1, 1)).number);
  EXPECT_FALSE(RangeOfBody("div(%0[i0], %0[i0])", Between(0, 1)).number);
  // max returns NaN if an operand is NaN.
  EXPECT_FALSE(RangeOfBody("max(%0[i0], 7.0)", ValueRange()).number);
}

TEST(ValueRanges, SmallestMagnitudes) {
  const ValueRange weights = RangeOf(Tensor::From<double>(DType::kF32, {4}, {-2, 0, 0.25, 8}));
  EXPECT_EQ(weights.lo, -2);
  EXPECT_EQ(weights.hi, 8);
  EXPECT_EQ(weights.least, 0.25);
  EXPECT_TRUE(weights.number);
  EXPECT_EQ(RangeOfBody("mul(%0[i0], 0.5)", weights).least, 0.125);
  EXPECT_EQ(RangeOfBody("mul(%0[i0], 1e-38)", weights).least, 0);  // subnormal
  EXPECT_EQ(RangeOfBody("add(%0[i0], 0.5)", weights).least, 0);
  EXPECT_FALSE(RangeOf(Tensor::From<double>(DType::kF32, {2}, {1, std::nan("")})).number);
}

TEST(ValueRanges, SumsKeepTheirSignAndMayOverflow) {
  const auto sum = [](const ValueRange& x) {
    const auto program = Parse("te p(%0: f32[100]) {\n  %1[]: f32 = sum.f32(i0<100) %0[i0]\n  return %1\n}").value();
    return (*InferRanges(program, {TensorRanges{x}}, Detail::kRanges)[0])[0];
  };
  EXPECT_EQ(sum(Between(0, 1)).lo, 0);
  EXPECT_NEAR(sum(Between(0, 1)).hi, 100, 0.1);
  EXPECT_TRUE(std::isinf(sum(Between(0, 1e37)).hi));
  EXPECT_TRUE(sum(Between(0, 1e37)).number);
  EXPECT_FALSE(sum(Between(-1e37, 1e37)).number);  // partial sums of both infinities
}

}  // namespace
}  // namespace fusion::te
