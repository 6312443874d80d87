// ByteBudget: how many bytes each caller may upload in an hour. Blobs that no job names are kept for an hour, so that
// this also bounds what one caller can fill the disk with. A token bucket for each: one that was idle has the whole
// hour's.
#ifndef FUSION_SERVER_BYTE_BUDGET_H_
#define FUSION_SERVER_BYTE_BUDGET_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "runtime/base/steady_clock.h"

namespace fusion {

class ByteBudget {
 public:
  explicit ByteBudget(int64_t bytes_an_hour, SteadyClock clock = SteadyNow)
      : bytes_an_hour_(static_cast<double>(bytes_an_hour)), clock_(std::move(clock)) {}

  // Fails with RESOURCE_EXHAUSTED, saying when to try again, if the caller has used its bytes up. Thread-safe.
  absl::Status Take(const std::string& owner, int64_t bytes);
  size_t callers() const;  // that are remembered, because they have not all their bytes

 private:
  struct Bucket {
    double used = 0;
    absl::Time as_of;
  };
  double UsedAt(const Bucket& bucket, absl::Time now) const;

  const double bytes_an_hour_;
  const SteadyClock clock_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion

#endif  // FUSION_SERVER_BYTE_BUDGET_H_
