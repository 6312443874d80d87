// RetryPolicy: whether and when a call that failed is made again. Only for calls that may be made twice. A refusal that
// names a delay is obeyed; a server that cannot be reached is asked again after growing pauses.
#ifndef FUSION_PROTO_RETRY_RETRY_POLICY_H_
#define FUSION_PROTO_RETRY_RETRY_POLICY_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fusion {

class RetryPolicy {
 public:
  // Gives up when `patience` has passed since the first failure after the last success.
  RetryPolicy(absl::Duration patience, std::function<absl::Time()> clock)
      : patience_(patience), clock_(std::move(clock)) {}

  // Returns how long to wait before the next attempt, or nothing: the error is final.
  std::optional<absl::Duration> PauseAfter(const absl::Status& error);
  // Something has succeeded: the patience begins anew.
  void Succeeded() { failing_since_ = absl::InfiniteFuture(); }

 private:
  const absl::Duration patience_;
  const std::function<absl::Time()> clock_;
  absl::Time failing_since_ = absl::InfiniteFuture();
  absl::Duration pause_;
};

}  // namespace fusion

#endif  // FUSION_PROTO_RETRY_RETRY_POLICY_H_
