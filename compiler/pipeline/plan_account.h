// What the account of a compilation says about its plan: decisions, bytes, kernels, and plan.json.
#ifndef FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_
#define FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_

#include "absl/status/status.h"
#include "compiler/pipeline/compilation.h"

namespace fusion {

// Call it after the last pass of PassPart::kPlan. Fails where a kernel does not keep to the plan (RealisePlan).
absl::Status AccountForPlan(Compilation* compilation);

// Writes plan.json again, with the kernels that tuning has chosen. Call it after the last pass of PassPart::kKernels.
absl::Status AccountForKernels(Compilation* compilation);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_
