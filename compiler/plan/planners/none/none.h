// The planner `none`: every operator is its own kernel. Fused results are compared with its results.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_NONE_NONE_H_
#define FUSION_COMPILER_PLAN_PLANNERS_NONE_NONE_H_

#include "compiler/plan/plan.h"

namespace fusion {

inline constexpr char kUnfusedPlanner[] = "none";
const Planner* NonePlanner();

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_NONE_NONE_H_
