// Chains: kernels of a plan that a processor's core could run depth first, a part of each after another, so that what
// they hand to each other stays in the core's own cache. They are the sub-graphs of group.h, with the cache as the LB
// of a cluster of one core (GraphTurbo, OSDI 2023, sections 3.1 and 3.2).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_CHAINS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_CHAINS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/plan/plan.h"

namespace fusion::graph_turbo {

struct Chain {
  std::vector<size_t> layers;  // fusion blocks of the plan, at least two, in an order in which they run
  // Positions in `layers` of the makers and the readers of values that leave the cache.
  std::vector<std::pair<size_t, size_t>> beyond;
};

// Empty where the device has no private cache, and for work-items that are lanes (a GPU), whose tasks are no cores.
// Layers take part that others hand values beyond the cache to, or that do so, and that are expressions; those with
// requests of their own (scopes, directives, recomputed nodes) do not.
absl::StatusOr<std::vector<Chain>> ChainsOf(const ecg::Graph& graph, const FusionPlan& plan, const DeviceModel& device);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_CHAINS_H_
