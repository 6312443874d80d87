#include "server/jobs/stage_timer.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(StageTimer, AStageEndsWithTheNextOne) {
  absl::Time now = absl::UnixEpoch();
  StageTimer timer([&] { return now; });
  EXPECT_FALSE(timer.Begin("import").has_value());
  now += absl::Seconds(2);
  EXPECT_FALSE(timer.Begin("import").has_value()) << "it goes on";
  now += absl::Seconds(1);
  const auto import = timer.Begin("plan");
  ASSERT_TRUE(import.has_value());
  EXPECT_EQ(import->stage, "import");
  EXPECT_EQ(import->took, absl::Seconds(3));
  now += absl::Seconds(5);
  const auto plan = timer.Begin("");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->took, absl::Seconds(5));
  EXPECT_FALSE(timer.Begin("").has_value());
}

}  // namespace
}  // namespace fusion
