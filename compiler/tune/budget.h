// How much a user is ready to wait for tuning.
#ifndef FUSION_COMPILER_TUNE_BUDGET_H_
#define FUSION_COMPILER_TUNE_BUDGET_H_

#include <limits>
#include <string>

#include "absl/status/statusor.h"

namespace fusion::tune {

struct Budget {
  int trials = 0;  // for each kernel; trials of earlier compilations count
  // Limit for measuring all kernels of a model; what planning measures counts too.
  double seconds = std::numeric_limits<double>::infinity();
  double share = 0;  // smallest share of the model's time that makes a kernel worth trials
};

// Understands these texts and answers INVALID_ARGUMENT for any other:
// - "off": no trials.
// - "quick": a few trials of the kernels that matter; planning and trials together measure for at most a minute.
// - "full": trials until they stop paying.
// - a number: as "full", but measuring takes at most that many seconds.
// The time to build the chosen kernels comes on top.
absl::StatusOr<Budget> ParseBudget(const std::string& text);

}  // namespace fusion::tune

#endif  // FUSION_COMPILER_TUNE_BUDGET_H_
