#include "proto/retry/retry_policy.h"

#include <algorithm>

#include "proto/retry/retry_info.h"

namespace fusion {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(200), kLongestPause = absl::Seconds(3);

}  // namespace

std::optional<absl::Duration> RetryPolicy::PauseAfter(const absl::Status& error) {
  const std::optional<absl::Duration> asked = RetryDelayOf(error);
  if (error.ok() || (!asked.has_value() && !absl::IsUnavailable(error))) return std::nullopt;
  const absl::Time now = clock_();
  if (failing_since_ == absl::InfiniteFuture()) {
    failing_since_ = now;
    pause_ = kFirstPause;
  }
  const absl::Duration pause = asked.value_or(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  if (now + pause - failing_since_ > patience_) return std::nullopt;
  return std::max(pause, absl::Milliseconds(10));
}

}  // namespace fusion
