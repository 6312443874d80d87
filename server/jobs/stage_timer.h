// StageTimer: how long each stage of a job took, from the progress events that name them.
#ifndef FUSION_SERVER_JOBS_STAGE_TIMER_H_
#define FUSION_SERVER_JOBS_STAGE_TIMER_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace fusion {

class StageTimer {
 public:
  explicit StageTimer(std::function<absl::Time()> clock) : clock_(std::move(clock)) {}

  struct Ended {
    std::string stage;
    absl::Duration took;
  };
  // The job is in this stage now ("": in none). Returns the one that this ends.
  std::optional<Ended> Begin(const std::string& stage) {
    if (stage == stage_) return std::nullopt;
    const absl::Time now = clock_();
    std::optional<Ended> ended;
    if (!stage_.empty()) ended = Ended{stage_, now - since_};
    stage_ = stage;
    since_ = now;
    return ended;
  }

 private:
  const std::function<absl::Time()> clock_;
  std::string stage_;
  absl::Time since_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_STAGE_TIMER_H_
