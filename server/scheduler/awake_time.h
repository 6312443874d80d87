// AwakeTime: how long something has waited, by its own looks at the clock.
#ifndef FUSION_SERVER_SCHEDULER_AWAKE_TIME_H_
#define FUSION_SERVER_SCHEDULER_AWAKE_TIME_H_

#include <algorithm>

#include "absl/time/time.h"

namespace fusion {

// Adds up the time between looks. A machine that stood still between two of them has not waited for a worker.
class AwakeTime {
 public:
  explicit AwakeTime(absl::Time now) : last_(now) {}
  void Look(absl::Time now) {
    passed_ += std::min(now - last_, absl::Seconds(1));
    last_ = now;
  }
  absl::Duration passed() const { return passed_; }

 private:
  absl::Time last_;
  absl::Duration passed_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_AWAKE_TIME_H_
