// A plan that follows from measurements may be slower than the plan that estimates alone give: kernels are measured
// alone and cold, and a model runs them one after another and warm. Where somebody measures, both plans are made and
// measured as whole models, and the faster one is kept (docs/decisions/0034-whole-plans-are-measured.md).
#ifndef FUSION_COMPILER_PIPELINE_PLAN_CANDIDATES_H_
#define FUSION_COMPILER_PIPELINE_PLAN_CANDIDATES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "compiler/pipeline/compilation.h"

namespace fusion {

// A plan of several is slower than another one only if it takes longer by more than this share: measurements are no more
// certain than that.
inline constexpr double kEqualPlans = 0.005;

// `made` is a program after its kernels were made, `compilation` what it was made with, and `dims` those of the
// specialisation. Leaves the fastest plan in `made`, whose account tells of all. Does nothing if `context.plans` is null,
// if nothing that the plan rests on was measured, or if the plan by estimates has the same kernels. A plan that cannot be
// compared stays.
absl::Status KeepFastestPlan(const Compilation& compilation, const std::map<std::string, int64_t>& dims,
                             Prepared* made);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PLAN_CANDIDATES_H_
