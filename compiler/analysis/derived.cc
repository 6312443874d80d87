#include "compiler/analysis/derived.h"

#include <algorithm>
#include <set>

namespace fusion::ecg {

int64_t ValueBytes(const Value& value) { return NumElements(value.type.shape) * DTypeBytes(value.type.dtype); }

NodeFacts DeriveNode(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  NodeFacts facts;
  facts.mapping = ops::NodeMapping(graph, node);
  facts.flops = ops::NodeFlops(graph, node);
  for (ValueId value : std::set<ValueId>(node.inputs.begin(), node.inputs.end())) {
    if (value != kNone) facts.bytes_read += ValueBytes(graph.value(value));
  }
  for (ValueId value : node.outputs) facts.bytes_written += ValueBytes(graph.value(value));
  return facts;
}

bool IsIntermediate(const Graph& graph, ValueId value) {
  return graph.value(value).producer != kNone && !graph.IsOutput(value);
}

int64_t IntermediateBytes(const Graph& graph) {
  const std::set<ValueId> outputs(graph.outputs().begin(), graph.outputs().end());
  int64_t bytes = 0;
  for (size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.producer != kNone && outputs.count(static_cast<ValueId>(id)) == 0) bytes += ValueBytes(value);
  }
  return bytes;
}

bool IsRemovable(const Graph& graph, ValueId value, const std::function<bool(NodeId)>& in_fusion_block) {
  const std::vector<NodeId>& consumers = graph.value(value).consumers;
  return IsIntermediate(graph, value) && std::all_of(consumers.begin(), consumers.end(), in_fusion_block);
}

}  // namespace fusion::ecg
