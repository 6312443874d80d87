// How often a schedule of instances brings weights from DDR: each instance of a sub-graph needs those of all its
// operators, so that small instances read them again and again where the GB cannot keep them. The paper keeps weights
// outside of its account (GraphTurbo, OSDI 2023, section 2.2); a plan that is chosen without them may read more bytes
// of weights than it saves of results.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_WEIGHT_TRAFFIC_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_WEIGHT_TRAFFIC_H_

#include <vector>

#include "compiler/plan/planners/graph_turbo/instances.h"

namespace fusion::graph_turbo {

// The bytes of weights that come from DDR while the operators of the instances run in this order. A weight stays in
// `room_bytes` of the GB until it has to make room for others: the one that is read last of all goes first, which is
// optimal as the order is known. A weight that is larger than the room passes through it each time. Tables that are
// only read at addresses that depend on data stay in DDR and are not counted.
double WeightBytesFromDdr(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                          const InstanceGraph& instances, const std::vector<int>& order, double room_bytes);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_WEIGHT_TRAFFIC_H_
