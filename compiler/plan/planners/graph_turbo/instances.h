// Instances of sub-graphs and the edges between them (GraphTurbo, section 3.3).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_INSTANCES_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_INSTANCES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/plan/planners/graph_turbo/group.h"

namespace fusion::graph_turbo {

struct Instance {
  int sub_graph = 0;
  int64_t number = 0;           // among the instances of its sub-graph
  std::vector<Region> outputs;  // parallel to OutputsOf
  Footprint footprint;
  // For each tensor that it reads and another sub-graph makes: the instances that make what it reads, ascending.
  std::map<int, std::vector<int>> makers;
  std::vector<int> producers, consumers;  // instances, distinct, ascending
};

struct InstanceGraph {
  std::vector<Instance> instances;  // those of a sub-graph follow each other
  std::vector<int> first;           // by sub-graph: its first instance
  // Edges between instances: those that sub-graphs hand down to all pairs of their instances, and those that are left.
  // The paper removes an edge if the check "is the output of the producer used by the consumer" says so; as printed it
  // removes those that are used, which must be a slip. An edge is left if and only if the box that the consumer reads
  // and the box that the producer makes share an element.
  int64_t inherited_edges = 0, edges = 0;
};

// A sub-graph without a split has one instance, the whole.
InstanceGraph MakeInstances(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_INSTANCES_H_
