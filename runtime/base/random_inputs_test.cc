#include "runtime/base/random_inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/narrow_float.h"

namespace fusion {
namespace {

TEST(RandomInputsTest, SeededAndInRange) {
  const Tensor a = RandomTensor(DType::kF32, {1000}, 5), b = RandomTensor(DType::kF32, {1000}, 5);
  const Tensor c = RandomTensor(DType::kF32, {1000}, DeriveSeed(5, 1));
  double sum = 0;
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.GetDouble(i), b.GetDouble(i));
    EXPECT_GE(a.GetDouble(i), -1.0);
    EXPECT_LT(a.GetDouble(i), 1.0);
    equal += a.GetDouble(i) == c.GetDouble(i);
    sum += a.GetDouble(i);
  }
  EXPECT_LT(std::fabs(sum), 60);  // standard deviation of the sum is 18
  EXPECT_LT(equal, 5);
  EXPECT_EQ(RandomTensor(DType::kF32, {1}, 0).GetDouble(0), RandomTensor(DType::kF64, {1}, 0).GetDouble(0));
  const Tensor ids = RandomTensor(DType::kI64, {1000}, 1, 10);
  int64_t largest = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_GE(ids.GetInt(i), 0);
    largest = std::max(largest, ids.GetInt(i));
  }
  EXPECT_EQ(largest, 9);
}

}  // namespace
}  // namespace fusion
