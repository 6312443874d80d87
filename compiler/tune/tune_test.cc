#include "compiler/tune/tune.h"

#include <gtest/gtest.h>

namespace fusion::tune {
namespace {

constexpr LatencySource kMeasured = LatencySource::kMeasured;

TEST(PickVariant, TakesTheFastestBeyondTheMargin) {
  EXPECT_EQ(PickVariant({{100, kMeasured}, {90, kMeasured}, {80, LatencySource::kDatabase}}), 2);
  EXPECT_EQ(PickVariant({{100, kMeasured}, {97, kMeasured}}), 0);
}

TEST(PickVariant, EstimatesNeverWin) {
  EXPECT_EQ(PickVariant({{100, kMeasured}, {10, LatencySource::kModel}}), 0);
  EXPECT_EQ(PickVariant({{100, LatencySource::kModel}, {10, kMeasured}}), 0);
  EXPECT_EQ(PickVariant({}), 0);
}

TEST(WorthTuning, NeedsAShareOfTheTime) {
  EXPECT_TRUE(WorthTuning(3, 100));
  EXPECT_FALSE(WorthTuning(1, 100));
}

}  // namespace
}  // namespace fusion::tune
