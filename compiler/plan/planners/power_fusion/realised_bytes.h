// The bytes that GIR counts for a kernel whose phases are known. The search counts with the phases that it plans; the
// schedule may find others, and its answer says which.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_REALISED_BYTES_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_REALISED_BYTES_H_

#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/plan/planners/power_fusion/basic_operators.h"
#include "compiler/plan/planners/power_fusion/gir.h"

namespace fusion::power_fusion {

// Counts as BytesOf does, each tensor once in each phase that touches it, with the phases of the account. Partial
// results of a reduction in two phases have the size that the account leaves for them. `operators`: by node, none of
// the fusion block's opaque.
MovedBytes RealisedBytes(const ecg::Graph& graph, const std::vector<BasicOperator>& operators,
                         const FusionBlock& fusion_block, const FusionBlockAccount& account, const DeviceModel& device);

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_REALISED_BYTES_H_
