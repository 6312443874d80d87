// The graph of a plan while it grows: nodes are contracted into fusion blocks, which stay acyclic and in topological
// order. An acyclic quotient makes every fusion block convex: a path that left a fusion block and came back would be a
// cycle.
#ifndef FUSION_COMPILER_PLAN_QUOTIENT_GRAPH_H_
#define FUSION_COMPILER_PLAN_QUOTIENT_GRAPH_H_

#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion {

// Starts with every node in a fusion block of its own. A fusion block is named by one of its nodes. A question costs
// time in proportion to the part of the order between the two fusion blocks, not to the graph (Pearce and Kelly, "A
// dynamic topological sort algorithm", 2006).
class QuotientGraph {
 public:
  explicit QuotientGraph(const ecg::Graph& graph);

  // Distinct neighbours of a node, in topological order.
  const std::vector<ecg::NodeId>& Successors(ecg::NodeId node) const { return successors_[node]; }
  const std::vector<ecg::NodeId>& Predecessors(ecg::NodeId node) const { return predecessors_[node]; }

  // The node that names the fusion block of `node`; contracting may change it.
  ecg::NodeId FusionBlockOf(ecg::NodeId node) const { return fusion_block_of_[node]; }
  bool Together(ecg::NodeId a, ecg::NodeId b) const { return fusion_block_of_[a] == fusion_block_of_[b]; }
  // The nodes of this node's fusion block, in no particular order.
  const std::vector<ecg::NodeId>& Members(ecg::NodeId node) const { return members_[fusion_block_of_[node]]; }

  // Requires an edge between `producer` and `consumer`, which are not in one fusion block. Returns kNone when their
  // fusion blocks may become one, else a node on a path from the producer's fusion block to the consumer's that runs
  // through a third fusion block.
  ecg::NodeId PathBetween(ecg::NodeId producer, ecg::NodeId consumer);
  // Makes them one fusion block; PathBetween must be kNone.
  void Contract(ecg::NodeId producer, ecg::NodeId consumer);

  // Returns all fusion blocks in a topological order, members ascending.
  std::vector<std::vector<ecg::NodeId>> FusionBlocks() const;

 private:
  // Marks the fusion blocks reachable from `from` that stand before `to` in the order, `from` excluded.
  void MarkReachable(int from, int to);

  std::vector<std::vector<ecg::NodeId>> successors_, predecessors_;
  std::vector<int> fusion_block_of_;               // by node
  std::vector<std::vector<ecg::NodeId>> members_;  // by fusion block; empty: it was contracted into another
  std::vector<int> rank_;                          // by fusion block
  std::vector<int> order_;                         // by rank: a fusion block, or kNone where one was contracted away
  std::vector<int> marked_;                        // by fusion block: the last question that reached it
  int question_ = 0;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_QUOTIENT_GRAPH_H_
