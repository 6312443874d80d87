// What the account of a compilation says about its plan: decisions, bytes, kernels, and plan.json.
#ifndef FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_
#define FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_

#include "compiler/pipeline/compilation.h"

namespace fusion {

// Call it after the last pass of PassPart::kPlan.
void AccountForPlan(Compilation* compilation);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PLAN_ACCOUNT_H_
