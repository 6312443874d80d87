// A plan that follows from measurements may be slower than a plan by estimates alone: kernels are measured alone and
// cold, and a model runs them one after another and warm. Where somebody measures, several plans are made and measured
// as whole models, and the fastest is kept (docs/decisions/0034-whole-plans-are-measured.md):
// - "offline", for a CPU: by estimates for one thread of a typical core, as fusion-compile plans without a device
// - "by estimates", for this device at typical rates
// - "permutations carried", where that changes anything: offline, for the graph whose shuffles are moved into weights
//   (simplify::MovedPermutations, docs/decisions/0049-segments.md)
// - "offline with tuned schedules" and "by estimates with tuned schedules": the fusion blocks and layouts of these
//   plans, scheduled for this device and its threads, with the schedules that tuning found for equal kernels. Nothing
//   more is measured for them
// - "by measurements", the plan that was made
// A planner that chooses among plans (`auto`) leaves them with its own; instead of the second, all that may be the
// best, and that of `none`, are measured beside the one that it chose, each under its planner's name
// (docs/decisions/0043-auto.md); the offline plan is that of its preferred planner, as fusion-compile's, and "auto
// offline" the one that it chooses by the same estimates. Offers are scheduled as the offline plan is, or for this
// device where one thread of a typical core cannot keep a kernel whole. Last, such a plan that is the fastest is
// compared with its own structure, scheduled for this device at typical rates and in the schedules that tuning found.
#ifndef FUSION_COMPILER_PIPELINE_PLAN_CANDIDATES_H_
#define FUSION_COMPILER_PIPELINE_PLAN_CANDIDATES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "compiler/pipeline/compilation.h"

namespace fusion {

// Plans whose latencies differ by at most this share are equally fast: measurements are no more certain. The
// first such plan of the list above is kept, which depends on the fewest things: a machine, and its measurements. Where
// the 95% confidence interval of a plan's ratio to the first one reaches 1, the first one is kept: a busy machine
// measures gains that are none.
inline constexpr double kEqualPlans = 0.005;

// `made` is a program after its kernels were made, `compilation` what it was made with, and `dims` those of the
// specialisation. Leaves the fastest plan in `made`, whose account tells of all that have different kernels. Does
// nothing if `context.plans` is null, if nothing that the plan rests on was measured and the planner was offered no
// other plans, or if all plans have the same kernels. If plans cannot be compared, `made` stays.
absl::Status KeepFastestPlan(const Compilation& compilation, const std::map<std::string, int64_t>& dims,
                             Prepared* made);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PLAN_CANDIDATES_H_
