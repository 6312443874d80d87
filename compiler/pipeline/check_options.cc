#include "compiler/pipeline/check_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/api/modes.h"
#include "compiler/backends/backend.h"
#include "compiler/pipeline/passes.h"
#include "compiler/plan/plan.h"
#include "compiler/tune/budget.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::Status CheckOptions(const CompileOptions& options, const CompileContext& context) {
  RETURN_IF_ERROR(MathLevelOf(options.math).status());
  RETURN_IF_ERROR(CheckPrecision(options.precision));
  RETURN_IF_ERROR(CheckSize(options.size));
  if (FindPlanner(options.planner) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown planner '", options.planner, "': use one of ", absl::StrJoin(PlannerNames(), ", ")));
  }
  RETURN_IF_ERROR(tune::ParseBudget(options.tune).status());
  RETURN_IF_ERROR(CheckDisabled(options.disabled_passes));
  if (FindBackend(context.device->kind) == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no kernels are printed for target '", context.device->kind, "'"));
  }
  return absl::OkStatus();
}

}  // namespace fusion
