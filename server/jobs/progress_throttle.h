// ProgressThrottle: decides which progress events of a job are stored. A new stage, the end of a stage, and an event
// after a quiet moment pass; a flood of events is thinned to ten per second.
#ifndef FUSION_SERVER_JOBS_PROGRESS_THROTTLE_H_
#define FUSION_SERVER_JOBS_PROGRESS_THROTTLE_H_

#include <algorithm>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "compiler/pipeline/compile.h"

namespace fusion {

class ProgressThrottle {
 public:
  explicit ProgressThrottle(std::function<absl::Time()> clock) : clock_(std::move(clock)), last_(clock_()) {}

  bool Passes(const ProgressEvent& event) {
    const absl::Time now = clock_();
    tokens_ = std::min(kBurst, tokens_ + kPerSecond * absl::ToDoubleSeconds(now - last_));
    last_ = now;
    const bool ends = event.total > 0 && event.done == event.total && event.done != done_;
    if (event.stage != stage_ || ends) {
      stage_ = event.stage;
      done_ = event.done;
      return true;
    }
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    done_ = event.done;
    return true;
  }

 private:
  static constexpr double kBurst = 10, kPerSecond = 10;
  const std::function<absl::Time()> clock_;
  absl::Time last_;
  double tokens_ = kBurst;
  std::string stage_;
  int64_t done_ = -1;
};

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_PROGRESS_THROTTLE_H_
