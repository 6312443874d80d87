// The best order of few sub-graph instances. GraphTurbo (OSDI 2023, section 3.3) takes the better of two heuristic
// orders and announces an integer program; this is the exact answer where the graph is small or narrow.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_EXACT_ORDER_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_EXACT_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/plan/planners/graph_turbo/instances.h"

namespace fusion::graph_turbo {

// The bytes of an instance in the LBs of all cores.
struct InstanceBytes {
  double outputs = 0;  // from its run until its last consumer has run
  double own = 0;      // while it runs, beside what other instances have made: its outputs too
};
std::vector<InstanceBytes> BytesOfInstances(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                            const InstanceGraph& instances);

// The cost of an order: over the runs of all instances, the sum of the bytes in the LBs beyond `capacity`; then the sum
// of all bytes that wait there.
struct OrderCost {
  double overflow = 0, waiting = 0;
  auto operator<=>(const OrderCost&) const = default;
};
OrderCost CostOfOrder(const InstanceGraph& graph, const std::vector<InstanceBytes>& bytes, double capacity,
                      const std::vector<int>& order);

// The order of least cost, by dynamic programming over the sets of instances that may have run. Returns nullopt for
// more than 64 instances, or where there are more than `most_sets` such sets.
std::optional<std::vector<int>> ExactOrder(const InstanceGraph& graph, const std::vector<InstanceBytes>& bytes,
                                           double capacity, int64_t most_sets = 100'000);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_EXACT_ORDER_H_
