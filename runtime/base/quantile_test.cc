#include "runtime/base/quantile.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

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

}  // namespace
}  // namespace fusion
