// The loops of a graph (compiler/ops/control/loop.h) and which nodes run in them.
#ifndef FUSION_COMPILER_OPS_CONTROL_FIND_LOOPS_H_
#define FUSION_COMPILER_OPS_CONTROL_FIND_LOOPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::ecg {

struct Loop {
  NodeId begin = kNone, end = kNone;
  int64_t trips = 1;
  int carried = 0;
};

struct Loops {
  static constexpr int kOnce = -1;      // a node that runs once
  static constexpr int kBoundary = -2;  // LoopBegin or LoopEnd
  static constexpr int kDead = -3;      // a node of a loop without LoopEnd

  std::vector<Loop> list;    // by LoopBegin, ascending
  std::vector<int> of_node;  // by node: an index into `list`, or one of the above

  bool empty() const { return list.empty(); }
  // How often the node runs.
  int64_t Trips(NodeId node) const { return of_node[node] < 0 ? 1 : list[static_cast<size_t>(of_node[node])].trips; }
};

// Loops do not nest. Fails with INTERNAL, naming the nodes, where one loop runs in another, a LoopBegin has several
// LoopEnds, or where an output is computed within a loop. A LoopBegin without LoopEnd is dead, and no loop.
absl::StatusOr<Loops> FindLoops(const Graph& graph);

// The same for a graph that was verified, where FindLoops cannot fail.
Loops LoopsOf(const Graph& verified);

// Returns FAILED_PRECONDITION, naming two nodes, unless all nodes run in the same loop, or all once. A boundary is only
// with itself.
absl::Status CheckSameLoop(const Graph& graph, const Loops& loops, const std::vector<NodeId>& nodes);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_OPS_CONTROL_FIND_LOOPS_H_
