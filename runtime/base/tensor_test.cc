#include "runtime/base/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace fusion {
namespace {

TEST(TensorTest, ChecksSizes) {
  EXPECT_EQ(*CheckedSizeBytes({2, 3}, DType::kF32), 24);
  EXPECT_EQ(*CheckedSizeBytes({}, DType::kI64), 8);
  EXPECT_EQ(*CheckedSizeBytes({int64_t{1} << 62, 0}, DType::kF32), 0);
  EXPECT_FALSE(CheckedSizeBytes({int64_t{1} << 40, 2}, DType::kF32).ok());
  EXPECT_FALSE(CheckedSizeBytes({-1}, DType::kF32).ok());
}

TEST(TensorTest, ConvertsElements) {
  Tensor tensor = Tensor::From<double>(DType::kF16, {2}, {1.5, -2.25});
  EXPECT_EQ(tensor.GetDouble(0), 1.5);
  EXPECT_EQ(tensor.GetInt(1), -2);
  EXPECT_EQ(tensor.Reshaped({2, 1}).GetDouble(1), -2.25);
}

}  // namespace
}  // namespace fusion
