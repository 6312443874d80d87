// The planner `fusion_stitching`: FusionStitching (Zheng et al., 2020). The README says where each of the paper's
// mechanisms is, and where the code departs from them.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_FUSION_STITCHING_H_
#define FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_FUSION_STITCHING_H_

#include "compiler/plan/plan.h"

namespace fusion {

const Planner* FusionStitchingPlanner();

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_FUSION_STITCHING_H_
