// The order in which an accelerator computes parts of layers.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_SEQUENCE_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_SEQUENCE_H_

#include <vector>

#include "compiler/plan/planners/graph_turbo/depth_first_plan.h"

namespace fusion::graph_turbo {

// One operator of one instance.
struct Step {
  int op = 0;
  std::vector<Region> outputs;            // parallel to the operator's
  std::vector<std::vector<int>> sources;  // parallel to its inputs: the steps that make it; none for a model's input
  bool operator==(const Step&) const = default;
};

// The operators of all instances, in the plan's order.
std::vector<Step> SequenceOf(const OpGraph& graph, const DepthFirstPlan& plan);

// Each operator once, as a whole.
std::vector<Step> WholeLayers(const OpGraph& graph);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_SEQUENCE_H_
