// Orders of sub-graph instances (GraphTurbo, section 3.3).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_ORDER_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_ORDER_H_

#include <vector>

#include "compiler/plan/planners/graph_turbo/instances.h"

namespace fusion::graph_turbo {

// Breadth first: an instance joins the queue when its last producer has run.
std::vector<int> BreadthFirstOrder(const InstanceGraph& graph);

// Depth first, Algorithm 3. The list `ready` takes an instance when its first producer has run, and the last one of the
// list that waits for no producer runs next.
std::vector<int> DepthFirstOrder(const InstanceGraph& graph);

// Beyond the paper: backwards from the instances that nothing reads. Each one is preceded by all that it needs, and a
// producer by all that it needs, before the next producer is looked at.
std::vector<int> DemandOrder(const InstanceGraph& graph);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_ORDER_H_
