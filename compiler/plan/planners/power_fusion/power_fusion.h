// The planner `power_fusion`: PowerFusion (Ma et al., 2023). The README says where each of the paper's mechanisms is,
// and where the code departs from them.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_POWER_FUSION_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_POWER_FUSION_H_

#include "compiler/plan/plan.h"

namespace fusion {

const Planner* PowerFusionPlanner();

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_POWER_FUSION_H_
