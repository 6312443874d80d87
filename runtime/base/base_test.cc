#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/dtype.h"
#include "runtime/base/pack_box.h"
#include "runtime/base/quantile.h"
#include "runtime/base/run_check.h"
#include "runtime/base/sha256.h"
#include "runtime/base/tensor.h"

namespace fusion {
namespace {

TEST(DTypeTest, NamesRoundTrip) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
  }
  EXPECT_FALSE(ParseDType("f31").has_value());
}

TEST(DTypeTest, EveryHalfRoundTripsThroughFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(FloatToHalf(value), bits);
  }
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);               // first value that rounds to infinity
  EXPECT_EQ(FloatToHalf(1.0f + 1.0f / 2048), 0x3c00);     // tie to even
  EXPECT_EQ(FloatToBFloat16(1.0f + 1.0f / 256), 0x3f80);  // tie to even
}

TEST(Sha256Test, KnownAnswer) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(TensorTest, ChecksSizes) {
  EXPECT_EQ(*CheckedSizeBytes({2, 3}, DType::kF32), 24);
  EXPECT_EQ(*CheckedSizeBytes({}, DType::kI64), 8);
  EXPECT_EQ(*CheckedSizeBytes({int64_t{1} << 62, 0}, DType::kF32), 0);
  EXPECT_FALSE(CheckedSizeBytes({int64_t{1} << 40, 2}, DType::kF32).ok());
  EXPECT_FALSE(CheckedSizeBytes({-1}, DType::kF32).ok());
}

TEST(PackBoxTest, MovesThePartToTheFront) {
  Tensor whole = Tensor::From<int64_t>(DType::kI16, {2, 3, 4}, {0,  1,  2,  3,  10, 11, 12, 13, 20, 21, 22, 23,
                                                                50, 51, 52, 53, 60, 61, 62, 63, 70, 71, 72, 73});
  PackBox(whole.mutable_data(), 2, {2, 3, 4}, {2, 2, 3});
  const std::vector<int64_t> expected = {0, 1, 2, 10, 11, 12, 50, 51, 52, 60, 61, 62};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(whole.GetInt(static_cast<int64_t>(i)), expected[i]) << i;
  Tensor rows = Tensor::From<int64_t>(DType::kI64, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  PackBox(rows.mutable_data(), 8, {2, 4}, {1, 4});
  EXPECT_EQ(rows.GetInt(3), 3);
  PackBox(rows.mutable_data(), 8, {2, 4}, {0, 2});
  EXPECT_EQ(rows.GetInt(4), 4);
}

TEST(SpreadBoxTest, IsTheInverseAndFillsZeros) {
  for (const Shape& part : std::vector<Shape>{{2, 2, 3}, {1, 3, 4}, {2, 3, 2}, {2, 1, 4}, {2, 3, 4}, {1, 1, 1}}) {
    const Shape extents = {2, 3, 4};
    Tensor small(DType::kI16, part), whole(DType::kI16, extents);
    for (int64_t i = 0; i < small.num_elements(); ++i) small.SetDouble(i, static_cast<double>(i + 1));
    for (int64_t i = 0; i < 24; ++i) whole.SetDouble(i, -1);
    SpreadBox(small.data(), whole.mutable_data(), 2, extents, part);
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t at[3] = {i / 12, i / 4 % 3, i % 4};
      const bool inside = at[0] < part[0] && at[1] < part[1] && at[2] < part[2];
      EXPECT_EQ(whole.GetInt(i), inside ? (at[0] * part[1] + at[1]) * part[2] + at[2] + 1 : 0) << ShapeToString(part);
    }
    PackBox(whole.mutable_data(), 2, extents, part);
    for (int64_t i = 0; i < small.num_elements(); ++i) EXPECT_EQ(whole.GetInt(i), small.GetInt(i));
  }
}

TEST(RunCheckTest, NamesTheNumbers) {
  EXPECT_TRUE(RunCheckResult("{1}", {}).ok());
  EXPECT_TRUE(RunCheckResult("{1}", {1, 5}).ok());
  const absl::Status status = RunCheckResult("{1} meets {2}, {3}", {0, 5, 6});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "5 meets 6, {3}");
}

// The ranks that the binomial distribution gives: between the 6th and the 15th of 20 samples with 95.9%, and between the
// 40th and the 61st of 100 with 96.5%.
TEST(QuantileTest, AnIntervalHoldsTheMedian) {
  std::vector<double> samples;
  for (int i = 100; i > 0; --i) samples.push_back(i);
  EXPECT_EQ(MedianInterval(samples).low, 40);
  EXPECT_EQ(MedianInterval(samples).high, 61);
  samples.erase(samples.begin(), samples.begin() + 80);
  EXPECT_EQ(MedianInterval(samples).low, 6);
  EXPECT_EQ(MedianInterval(samples).high, 15);
  EXPECT_EQ(MedianInterval({3, 1}).low, 1);
  EXPECT_EQ(MedianInterval({3, 1}).high, 3);
  EXPECT_EQ(MedianInterval({7}).low, 7);
}

TEST(TensorTest, ConvertsElements) {
  Tensor tensor = Tensor::From<double>(DType::kF16, {2}, {1.5, -2.25});
  EXPECT_EQ(tensor.GetDouble(0), 1.5);
  EXPECT_EQ(tensor.GetInt(1), -2);
  EXPECT_EQ(tensor.Reshaped({2, 1}).GetDouble(1), -2.25);
}

}  // namespace
}  // namespace fusion
