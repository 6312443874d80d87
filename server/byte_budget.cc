#include "server/byte_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/retry/retry_info.h"

namespace fusion {

double ByteBudget::UsedAt(const Bucket& bucket, absl::Time now) const {
  return std::max(0.0, bucket.used - bytes_an_hour_ * absl::ToDoubleHours(now - bucket.as_of));
}

absl::Status ByteBudget::Take(const std::string& owner, int64_t bytes) {
  const absl::Time now = clock_();
  absl::MutexLock lock(&mutex_);
  std::erase_if(buckets_, [&](const auto& one) { return one.first != owner && UsedAt(one.second, now) <= 0; });
  Bucket& bucket = buckets_[owner];
  bucket.used = UsedAt(bucket, now);
  bucket.as_of = now;
  // Who has used nothing may send a blob that is larger than the budget; it takes longer to pay.
  const double missing = bucket.used > 0 ? bucket.used + static_cast<double>(bytes) - bytes_an_hour_ : 0;
  if (missing > 0.5) {  // of a byte
    const absl::Duration wait = absl::Hours(std::min(bucket.used, missing) / bytes_an_hour_);
    return RetryAfter(absl::ResourceExhaustedError(absl::StrCat(
                          "caller '", owner, "' has uploaded ", static_cast<int64_t>(bucket.used) >> 20, " of the ",
                          static_cast<int64_t>(bytes_an_hour_) >> 20, " MiB that one may in an hour; try again")),
                      std::max(absl::Ceil(wait - absl::Milliseconds(1), absl::Seconds(1)), absl::Seconds(1)));
  }
  bucket.used += static_cast<double>(bytes);
  return absl::OkStatus();
}

size_t ByteBudget::callers() const {
  absl::MutexLock lock(&mutex_);
  return buckets_.size();
}

}  // namespace fusion
