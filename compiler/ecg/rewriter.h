// Rewriter: a pass makes its new graph from an old one with it. The pass walks the old nodes in order and, for each,
// copies it or binds its outputs to values of the new graph; Finish adds the outputs. Constants are copied when first
// used, so unused ones vanish.
#ifndef FUSION_COMPILER_ECG_REWRITER_H_
#define FUSION_COMPILER_ECG_REWRITER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::ecg {

// Adds an output that shares its value with no other output and with no input. An input or a repeated value gets an
// Identity node, because whoever runs the graph stores each output once, and never into an input. A constant may be an
// output.
void AddOwnOutput(Graph* graph, ValueId value, const std::string& name);

class Rewriter {
 public:
  explicit Rewriter(const Graph& source);  // copies name and inputs; `source` must outlive the rewriter

  Graph* graph() { return &graph_; }
  // Returns the new value of an old one. kNone stays kNone; an old node's output must have been bound or copied before.
  ValueId Map(ValueId old_value);
  std::vector<ValueId> MapInputs(const Node& old_node);
  void Bind(ValueId old_value, ValueId new_value) { map_[old_value] = new_value; }
  NodeId Copy(const Node& old_node) { return CopyWith(old_node, MapInputs(old_node)); }
  NodeId CopyWith(const Node& old_node, std::vector<ValueId> new_inputs);
  Graph Finish();

 private:
  const Graph& source_;
  Graph graph_;
  std::vector<ValueId> map_;  // by old value
};

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ECG_REWRITER_H_
