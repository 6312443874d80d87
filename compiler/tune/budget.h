// How much a user is ready to wait for tuning.
#ifndef FUSION_COMPILER_TUNE_BUDGET_H_
#define FUSION_COMPILER_TUNE_BUDGET_H_

#include <limits>
#include <string>

#include "absl/status/statusor.h"

namespace fusion::tune {

struct Budget {
  int trials = 0;                                            // of each kernel, those of earlier compilations included
  // For all kernels of a model, what planning measured included.
  double seconds = std::numeric_limits<double>::infinity();
  double share = 0;  // of the model's time that a kernel must take to be worth trials
};

// "off"; "quick": a few trials of the kernels that matter; what planning and trials measure takes a minute at most;
// "full": until trials stop paying; a number: as "full", but measuring takes at most so many seconds. Building what was
// chosen comes on top. INVALID_ARGUMENT for anything else.
absl::StatusOr<Budget> ParseBudget(const std::string& text);

}  // namespace fusion::tune

#endif  // FUSION_COMPILER_TUNE_BUDGET_H_
