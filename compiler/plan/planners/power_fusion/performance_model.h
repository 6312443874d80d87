// The performance model of a GIR-Graph, with which the search is pruned (PowerFusion §6): gOperators are regular and do
// not slow each other down.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_PERFORMANCE_MODEL_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_PERFORMANCE_MODEL_H_

#include "compiler/plan/planners/power_fusion/gir.h"

namespace fusion::power_fusion {

// Nanoseconds for one launch of the graph: in each phase the longer of moving and computing, and the barriers between
// phases. `device` has typical rates.
double EstimateNs(const Gir& gir, const DeviceModel& device);

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_PERFORMANCE_MODEL_H_
