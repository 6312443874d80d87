// The planner `xla_like`: fusion as FusionStitching (Zheng et al., 2020) describes XLA's, a baseline to stand beside.
// It works over opened composites. The README says what is read from the paper and what from XLA.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_XLA_LIKE_XLA_LIKE_H_
#define FUSION_COMPILER_PLAN_PLANNERS_XLA_LIKE_XLA_LIKE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/operator_kind.h"
#include "compiler/plan/plan.h"

namespace fusion {

const Planner* XlaLikePlanner();

// The kernels of that plan, for planners that begin where XLA ends. `traits`: of the graph's nodes, by id. Each fusion
// fusion block has one root, its last node; every other member is a cheap map that all its readers compute again. Fails
// as Planner::Plan does.
absl::StatusOr<FusionPlan> FuseLikeXla(const ecg::Graph& graph, const std::vector<OperatorTraits>& traits,
                                       FusionOracle& oracle, const PlanOptions& options);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_XLA_LIKE_XLA_LIKE_H_
