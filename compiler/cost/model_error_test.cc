#include "compiler/cost/model_error.h"

#include <limits>

#include "gtest/gtest.h"

namespace fusion {
namespace {

TEST(ModelError, AScaledModelIsPerfectOnceCalibrated) {
  const ModelError error = SummarizeModelError({{1, 2}, {10, 20}, {5, 10}, {100, 200}});
  EXPECT_EQ(error.kernels, 4);
  EXPECT_DOUBLE_EQ(error.rank_correlation, 1);
  EXPECT_DOUBLE_EQ(error.median_ratio, 2);
  EXPECT_DOUBLE_EQ(error.median_error, 0);
}

TEST(ModelError, OrderCountsNotDistance) {
  EXPECT_DOUBLE_EQ(SummarizeModelError({{1, 1}, {2, 50}, {3, 51}}).rank_correlation, 1);
  EXPECT_DOUBLE_EQ(SummarizeModelError({{1, 9}, {2, 4}, {3, 1}}).rank_correlation, -1);
  // Ranks 1 2 3 4 against 1 3 2 4: 1 - 6·(0 + 1 + 1 + 0) / (4·15).
  EXPECT_DOUBLE_EQ(SummarizeModelError({{1, 1}, {2, 3}, {3, 2}, {4, 4}}).rank_correlation, 0.8);
}

TEST(ModelError, TiesHaveTheirMeanRank) {
  // Ranks 0.5 0.5 2 against 0 1 2.
  EXPECT_NEAR(SummarizeModelError({{1, 1}, {1, 2}, {3, 3}}).rank_correlation, 0.866, 1e-3);
}

TEST(ModelError, WithoutKernelsThereIsNothingToSay) {
  EXPECT_EQ(SummarizeModelError({}).kernels, 0);
  EXPECT_EQ(SummarizeModelError({{1, 2}}).rank_correlation, 0);
}

TEST(ModelError, HalfOfTheKernelsAreNearerThanTheMedian) {
  EXPECT_NEAR(SummarizeModelError({{1, 1}, {1, 1}, {1, 2}, {1, 0.5}, {1, 1.25}}).median_error, 0.2, 1e-9);
}

TEST(ModelError, NineOfTenAreWithinTheFactor) {
  std::vector<std::pair<double, double>> pairs(27, {10, 20});
  pairs.insert(pairs.end(), {{10, 40}, {10, 10}});
  EXPECT_EQ(TrustedFactor(SummarizeModelError(pairs)), std::numeric_limits<double>::infinity());  // too few
  pairs.insert(pairs.end(), 2, {10, 20});
  const ModelError error = SummarizeModelError(pairs);
  EXPECT_NEAR(error.factor, 1, 1e-9);
  pairs.insert(pairs.end(), 3, {10, 44});
  EXPECT_NEAR(SummarizeModelError(pairs).factor, 2, 1e-9);
  pairs.insert(pairs.end(), 3, {10, 44});
  EXPECT_NEAR(SummarizeModelError(pairs).factor, 2.2, 1e-9);
  EXPECT_EQ(TrustedFactor(SummarizeModelError(pairs)), 2.25);
}

}  // namespace
}  // namespace fusion
