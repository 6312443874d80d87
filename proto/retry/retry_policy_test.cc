#include "proto/retry/retry_policy.h"

#include <gtest/gtest.h>

#include "proto/retry/retry_info.h"

namespace fusion {
namespace {

TEST(RetryPolicy, AServerThatIsAwayIsAskedAgainAfterGrowingPausesUntilThePatienceIsOver) {
  absl::Time now = absl::UnixEpoch();
  RetryPolicy policy(absl::Seconds(10), [&] { return now; });
  absl::Duration last, all;
  for (std::optional<absl::Duration> pause; (pause = policy.PauseAfter(absl::UnavailableError(""))).has_value();) {
    EXPECT_GE(*pause, last);
    EXPECT_LE(*pause, absl::Seconds(3));
    last = *pause;
    all += *pause;
    now += *pause;
    ASSERT_LE(all, absl::Seconds(10));
  }
  EXPECT_GT(all, absl::Seconds(5));
  policy.Succeeded();
  EXPECT_EQ(policy.PauseAfter(absl::UnavailableError("")), absl::Milliseconds(200)) << "it begins anew";
}

TEST(RetryPolicy, ARefusalThatNamesADelayIsObeyed) {
  absl::Time now = absl::UnixEpoch();
  RetryPolicy policy(absl::Minutes(1), [&] { return now; });
  const absl::Status refused = RetryAfter(absl::ResourceExhaustedError("full"), absl::Seconds(7));
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(policy.PauseAfter(refused), absl::Seconds(7)) << i;
    now += absl::Seconds(7);
  }
  EXPECT_EQ(policy.PauseAfter(refused), std::nullopt) << "the next attempt would come after a minute";
}

TEST(RetryPolicy, OtherErrorsAreFinal) {
  RetryPolicy policy(absl::Minutes(1), [] { return absl::UnixEpoch(); });
  for (const absl::Status& error : {absl::ResourceExhaustedError(""), absl::InvalidArgumentError(""),
                                    absl::DeadlineExceededError(""), absl::OkStatus()}) {
    EXPECT_EQ(policy.PauseAfter(error), std::nullopt) << error;
  }
}

}  // namespace
}  // namespace fusion
