#include "client/verbs/patience.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/steady_clock.h"

namespace fusion {

absl::Status TryPatiently(absl::Duration patience, Progress& progress,
                          const std::function<absl::Status(RetryPolicy&)>& attempt) {
  RetryPolicy policy(patience, SteadyNow);
  while (true) {
    const absl::Status status = attempt(policy);
    const std::optional<absl::Duration> pause = policy.PauseAfter(status);
    if (!pause.has_value()) return status;
    progress.Line("waiting", absl::StrCat(status.message(), "; again in ", absl::FormatDuration(*pause)));
    absl::SleepFor(*pause);
  }
}

}  // namespace fusion
