// A plan beside what became of it: for each fusion block, what its kernel needs and costs, and the scope that each of
// its hand-overs was allowed and got.
#ifndef FUSION_COMPILER_PIPELINE_REALISED_PLAN_H_
#define FUSION_COMPILER_PIPELINE_REALISED_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/measure/fusion_oracle.h"
#include "compiler/plan/plan.h"

namespace fusion {

struct RealisedFusionBlock {
  FusionBlockAccount account;
  std::vector<PlannedHandOver> hand_overs;
  std::string reason;  // why there are several phases; empty where there is one
};

// Parallel to the plan's fusion blocks. Fails where a kernel cannot be made, or hands over otherwise than planned.
absl::StatusOr<std::vector<RealisedFusionBlock>> RealisePlan(const ecg::Graph& graph, const FusionPlan& plan,
                                                             GraphFusionOracle* oracle);

// "lane to block"; "device" where there is no choice.
std::string ScopesInWords(const HandOver& hand_over);
// For people: "3 hand-overs at block scope, 1 at device", "; 2 phases" where there are several, "; occupancy 25%
// (registers)" on devices that have it. Otherwise empty where everything stays in registers.
std::string InWords(const RealisedFusionBlock& realised);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_REALISED_PLAN_H_
