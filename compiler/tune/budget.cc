#include "compiler/tune/budget.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fusion::tune {

absl::StatusOr<Budget> ParseBudget(const std::string& text) {
  constexpr double kMostSeconds = 7 * 24 * 3600;
  constexpr int kQuickTrials = 8, kFullTrials = 400;
  constexpr double kQuickShare = 0.02, kFullShare = 0.004;
  if (text == "off") return Budget{};
  constexpr double kQuickSeconds = 60;  // where compilers are slow, this limit is reached before the number of trials
  if (text == "quick") return Budget{.trials = kQuickTrials, .seconds = kQuickSeconds, .share = kQuickShare};
  Budget full{.trials = kFullTrials, .share = kFullShare};
  if (text == "full") return full;
  if (absl::SimpleAtod(text, &full.seconds) && full.seconds > 0 && full.seconds <= kMostSeconds) return full;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown tuning '", text, "': use off, quick, full, or a number of seconds"));
}

}  // namespace fusion::tune
