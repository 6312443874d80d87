// GraphTurbo's graph scheduler (OSDI 2023, section 3) from a graph of operators to buffer scopes: grouping, instances,
// the better of two orders, core bindings, movements and levels. README.md says what each mechanism of the paper
// became.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_DEPTH_FIRST_PLAN_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_DEPTH_FIRST_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan/planners/graph_turbo/place_buffers.h"

namespace fusion::graph_turbo {

// One cluster of an accelerator (Fig. 1).
struct Cluster {
  int cores = 8;                  // c
  double local_bytes = 64 << 10;  // of one LB
  double global_bytes = 8 << 20;  // of the GB
  double weights_share = 0.125;   // of each LB, kept for weights (section 2.2 keeps "a small, fixed size")
  double recomputation = 1.25;    // split_info.h
  bool weights = true;            // the traffic of weights counts in the choice of instances
  bool literal = false;           // without the departures of README.md that can be left out
};

// How many buffers are at a level, and their bytes.
struct LevelCount {
  int64_t count = 0;
  double bytes = 0;
};
struct ScopeCounts {
  LevelCount local, global, ddr;
};

struct DepthFirstPlan {
  Grouping grouping;
  InstanceGraph instances;
  std::vector<int> order;
  std::string order_name;  // "BFS", "DFS", "demand", or "exact"
  std::vector<Binding> bindings;
  std::vector<Movement> movements;
  std::vector<PlacedBuffer> buffers;
  ScopeCounts outputs;  // of operators of instances
  ScopeCounts movement_outputs;
  double weight_bytes = 0;   // of weights, that come from DDR (weight_traffic.h)
  int64_t returned = 0;      // outputs that the model returns, which a DMA transfer takes to DDR besides
  double recomputation = 1;  // work of all instances / work of all operators
};

DepthFirstPlan MakeDepthFirstPlan(const OpGraph& graph, const Cluster& cluster);

// For people: sub-graphs with their splits, and the counts.
std::string Describe(const OpGraph& graph, const DepthFirstPlan& plan);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_DEPTH_FIRST_PLAN_H_
