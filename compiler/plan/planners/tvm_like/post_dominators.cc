#include "compiler/plan/planners/tvm_like/post_dominators.h"

#include <algorithm>
#include <map>

namespace fusion {

using ecg::NodeId;

Pattern PatternOf(const OperatorTraits& traits) {
  switch (traits.kind) {
    case OperatorKind::kWhole:
      return Pattern::kOpaque;
    case OperatorKind::kProduct:
      return Pattern::kElementwiseBehind;
    case OperatorKind::kReduction:
      return traits.rereads ? Pattern::kElementwiseBehind : Pattern::kReduction;
    case OperatorKind::kMap:
    case OperatorKind::kExpensiveMap:
      break;
  }
  return static_cast<Pattern>(traits.access);
}

PatternGraph MakePatternGraph(const ecg::Graph& graph, const std::vector<OperatorTraits>& traits) {
  const size_t nodes = graph.nodes().size();
  PatternGraph made;
  made.edges.resize(nodes);
  made.returned.resize(nodes);
  for (const OperatorTraits& one : traits) made.patterns.push_back(PatternOf(one));
  for (ecg::ValueId v : graph.outputs()) {
    if (graph.value(v).producer != ecg::kNone) made.returned[graph.value(v).producer] = true;
  }
  for (NodeId id = 0; id < static_cast<NodeId>(nodes); ++id) {
    std::map<NodeId, Pattern> edges;
    for (ecg::ValueId v : graph.node(id).outputs) {
      if (v == ecg::kNone) continue;
      for (NodeId consumer : graph.value(v).consumers) {
        Pattern pattern = made.patterns[consumer];
        // The operand that is not broadcast is read element by element.
        const ecg::ValueId result = graph.node(consumer).outputs[0];
        if (pattern == Pattern::kBroadcast && result != ecg::kNone &&
            graph.value(result).type.shape == graph.value(v).type.shape) {
          pattern = Pattern::kElementwise;
        }
        Pattern& edge = edges.emplace(consumer, pattern).first->second;
        edge = std::max(edge, pattern);
      }
    }
    for (const auto& [consumer, pattern] : edges) made.edges[id].push_back({consumer, pattern});
  }
  return made;
}

std::vector<PostDominator> PostDominators(const PatternGraph& graph) {
  std::vector<PostDominator> tree(graph.edges.size());
  for (size_t id = tree.size(); id-- > 0;) {
    if (graph.returned[id] || graph.edges[id].empty()) continue;
    Pattern pattern = Pattern::kElementwise;
    NodeId found = graph.edges[id][0].consumer;
    const auto up = [&](NodeId* node) {
      pattern = std::max(pattern, tree[*node].pattern);
      *node = tree[*node].node;
    };
    for (const PatternGraph::Edge& edge : graph.edges[id]) {
      pattern = std::max(pattern, edge.pattern);
      NodeId other = edge.consumer;
      while (found != other && found != ecg::kNone && other != ecg::kNone) {
        const int depth = tree[found].depth, other_depth = tree[other].depth;
        if (depth >= other_depth) up(&found);
        if (other_depth >= depth) up(&other);
      }
      if (found != other) found = ecg::kNone;
      if (found == ecg::kNone) break;
    }
    tree[id] = {found, found == ecg::kNone ? Pattern::kOpaque : pattern,
                found == ecg::kNone ? 1 : tree[found].depth + 1};
  }
  return tree;
}

}  // namespace fusion
