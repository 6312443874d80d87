// Calls that are made again: where the server is away, or says when to try again (proto/retry).
#ifndef FUSION_CLIENT_VERBS_PATIENCE_H_
#define FUSION_CLIENT_VERBS_PATIENCE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/progress.h"
#include "proto/retry/retry_policy.h"

namespace fusion {

inline constexpr absl::Duration kPatienceOfACall = absl::Minutes(1);

// Calls `attempt` until it succeeds, fails for good, or `patience` is over since it last got somewhere
// (RetryPolicy::Succeeded). Says each wait on `progress`.
absl::Status TryPatiently(absl::Duration patience, Progress& progress,
                          const std::function<absl::Status(RetryPolicy&)>& attempt);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_PATIENCE_H_
