// The planner `auto`: asks all other planners for a plan and takes the one that the cost model puts first as a whole
// (FusionOracle::EstimatePlan); then improves it as a whole. See README.md.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_AUTO_AUTO_H_
#define FUSION_COMPILER_PLAN_PLANNERS_AUTO_AUTO_H_

#include "compiler/plan/plan.h"

namespace fusion {

const Planner* AutoPlanner();

// Its plan is taken where the estimates of whole plans are too rough to say that another one is faster, and where it
// rests on measurements.
inline constexpr char kPreferredPlanner[] = "dnnfusion";
// The name of the plan that the search makes of the others.
inline constexpr char kCombinedPlan[] = "combined";

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_AUTO_AUTO_H_
