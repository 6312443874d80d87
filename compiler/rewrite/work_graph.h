// The graph while rules change it: nodes come and go in place, and ids stay.
#ifndef FUSION_COMPILER_REWRITE_WORK_GRAPH_H_
#define FUSION_COMPILER_REWRITE_WORK_GRAPH_H_

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::rewrite {

// The cost of a set of nodes. Nodes that constant folding will evaluate cost nothing.
struct Cost {
  double flops = 0;
  double bytes = 0;  // read and written
  double nodes = 0;
  Cost& operator+=(const Cost& other);
  Cost operator-(const Cost& other) const;
};

// How savings are compared: by FLOPs (§4.2), then bytes, then nodes; or by nodes, then bytes, then FLOPs.
enum class Measure : uint8_t { kFlops, kNodes };
using Rank = std::array<double, 3>;
Rank RankOf(const Cost& saving, Measure measure);

// Tensors among attributes count as different.
bool SameAttributes(const ecg::Attributes& a, const ecg::Attributes& b);

class WorkGraph {
 public:
  explicit WorkGraph(const ecg::Graph& source);

  // `consumers` of a value are live nodes, one entry per use.
  const ecg::Value& value(ecg::ValueId id) const { return values_[id]; }
  const ecg::Node& node(ecg::NodeId id) const { return nodes_[id].node; }
  bool IsAlive(ecg::NodeId id) const { return nodes_[id].alive; }
  // The number of consumers plus that of graph outputs.
  int Uses(ecg::ValueId id) const { return static_cast<int>(values_[id].consumers.size()) + output_uses_[id]; }
  // Whether the value is a constant or is computed from constants by nodes that constant folding will evaluate.
  bool IsKnown(ecg::ValueId id) const { return known_[id]; }
  // Whether a many-to-many operator computes the value.
  bool IsReduced(ecg::ValueId id) const;
  // The position that decides ties and the final order: that of the source node whose place the node took.
  int Order(ecg::NodeId id) const { return nodes_[id].order; }
  ecg::NodeId num_nodes() const { return static_cast<ecg::NodeId>(nodes_.size()); }
  ecg::ValueId num_values() const { return static_cast<ecg::ValueId>(values_.size()); }
  Cost NodeCost(ecg::NodeId id) const;

  ecg::ValueId AddValue(ecg::Value value);  // a constant
  // A small node over constants becomes its value at once, so that later patterns see its contents.
  ecg::NodeId AddNode(ecg::Node node, std::vector<ecg::ValueId> outputs, std::vector<ecg::ValueType> types, int order);
  // Makes every use of `from` a use of `to` and removes nodes that are no longer needed. The name moves to `to`.
  void Replace(ecg::ValueId from, ecg::ValueId to);

  void RemoveIfUnused(ecg::NodeId id);

  // Returns the live nodes in topological order, as near to the source's order as possible.
  ecg::Graph Finish() const;

 private:
  struct NodeEntry {
    ecg::Node node;
    bool alive = true;
    int order = 0;
  };
  ecg::ValueId Append(ecg::Value value, bool known);
  void FoldIfSmall(ecg::NodeId id);

  const ecg::Graph& source_;
  std::deque<NodeEntry> nodes_;
  std::deque<ecg::Value> values_;  // addresses stay
  std::vector<int> output_uses_;
  std::vector<bool> known_;
  std::vector<ecg::ValueId> outputs_;
};

// Returns the cost of a node over the given values. `known`: its inputs are all known at compile time.
Cost CostOf(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
            const std::vector<const ecg::Value*>& outputs, bool known);
// Returns whether constant folding will evaluate a node over known inputs.
bool IsFolded(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
              const std::vector<const ecg::Value*>& outputs);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_WORK_GRAPH_H_
