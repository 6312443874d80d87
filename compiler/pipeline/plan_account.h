// The part of a compilation's account that is about its plan: decisions, bytes, kernels, and plan.json.
#ifndef FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_
#define FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_

#include <string>

#include "absl/status/status.h"
#include "compiler/pipeline/compilation.h"

namespace fusion {

// Counts decisions, launches and bytes. Call it after the last pass of PassPart::kPlan.
void AccountForPlan(Compilation* compilation);

// Holds the kernels, as they are now, against the plan (RealisePlan) and writes plan.json. Call it last: after tuning,
// or after planning where no kernels are asked for.
absl::Status AccountForKernels(Compilation* compilation);

// The name of an alternative: "dnnfusion", "dnnfusion by measurements".
std::string NameOf(const OfferedPlan& offer);

// Writes the alternatives, if there are any, to plan.json.
void AccountForAlternatives(CompileAccount* account);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_
