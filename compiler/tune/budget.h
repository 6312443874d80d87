// How much a user is ready to wait for tuning.
#ifndef FUSION_COMPILER_TUNE_BUDGET_H_
#define FUSION_COMPILER_TUNE_BUDGET_H_

#include <limits>
#include <string>

#include "absl/status/statusor.h"

namespace fusion::tune {

struct Budget {
  int trials = 0;                                            // of each kernel, those of earlier compilations included
  double seconds = std::numeric_limits<double>::infinity();  // for all kernels of a model
  double share = 0;  // of the model's time that a kernel must take to be worth trials
};

// "off"; "quick": a few trials of the kernels that matter, a minute at most; "full": until trials stop paying; a
// number: as "full", but for at most so many seconds. INVALID_ARGUMENT for anything else.
absl::StatusOr<Budget> ParseBudget(const std::string& text);

}  // namespace fusion::tune

#endif  // FUSION_COMPILER_TUNE_BUDGET_H_
