// The cost model's time of a whole plan.
#ifndef FUSION_COMPILER_PIPELINE_PLAN_ESTIMATE_H_
#define FUSION_COMPILER_PIPELINE_PLAN_ESTIMATE_H_

#include <vector>

#include "compiler/bundle/program_layout.h"
#include "compiler/cost/device_model.h"
#include "compiler/launch/elide_copies.h"

namespace fusion {

// Returns nanoseconds of one run among many (movement/sequence_cost.h). `elided`: values that lie in another's memory.
// All iterations of a loop behind the first take what the second one takes.
double EstimatePlan(const std::vector<PlannedLaunch>& launches, const ElidedCopies& elided, const LoopPlan& loops,
                    const DeviceModel& device, int threads);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PLAN_ESTIMATE_H_
