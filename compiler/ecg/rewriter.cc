#include "compiler/ecg/rewriter.h"

#include <set>

namespace fusion::ecg {

void AddOwnOutput(Graph* graph, ValueId value, const std::string& name) {
  const bool is_input = graph->value(value).producer == kNone && !graph->value(value).constant.has_value();
  if (is_input || graph->IsOutput(value)) {
    const ValueType type = graph->value(value).type;
    value = graph->node(graph->AddNode("Identity", name, {value}, {}, {type}, {name})).outputs[0];
  }
  graph->AddOutput(value, name);
}

Rewriter::Rewriter(const Graph& source) : source_(source), map_(source.values().size(), kNone) {
  graph_.name = source.name;
  for (ValueId id : source.inputs()) map_[id] = graph_.AddInput(source.value(id).name, source.value(id).type);
}

ValueId Rewriter::Map(ValueId old_value) {
  if (old_value == kNone) return kNone;
  const Value& value = source_.value(old_value);
  if (map_[old_value] == kNone && value.constant.has_value()) {
    map_[old_value] = value.opaque ? graph_.AddOpaqueConstant(value.name, *value.constant)
                                   : graph_.AddConstant(value.name, *value.constant);
  }
  return map_[old_value];
}

std::vector<ValueId> Rewriter::MapInputs(const Node& old_node) {
  std::vector<ValueId> inputs;
  for (ValueId id : old_node.inputs) inputs.push_back(Map(id));
  return inputs;
}

NodeId Rewriter::CopyWith(const Node& old_node, std::vector<ValueId> new_inputs) {
  std::vector<ValueType> types;
  std::vector<std::string> names;
  for (ValueId id : old_node.outputs) {
    types.push_back(source_.value(id).type);
    names.push_back(source_.value(id).name);
  }
  const NodeId id = graph_.AddNode(old_node.op, old_node.name, std::move(new_inputs), old_node.attrs, std::move(types),
                                   std::move(names));
  for (size_t i = 0; i < old_node.outputs.size(); ++i) map_[old_node.outputs[i]] = graph_.node(id).outputs[i];
  return id;
}

Graph Rewriter::Finish() {
  std::set<int> cut;
  for (const OutputExtent& extent : source_.output_extents()) cut.insert(extent.output);
  for (size_t i = 0; i < source_.outputs().size(); ++i) {
    const std::string& name = source_.output_names()[i];
    ValueId value = Map(source_.outputs()[i]);
    if (graph_.value(value).constant.has_value() && cut.count(static_cast<int>(i)) > 0) {
      // An output with extents is packed in place, which a constant cannot be (Graph::IsOutputWithExtents), so an
      // Identity node copies it.
      const ValueType type = graph_.value(value).type;
      value = graph_.node(graph_.AddNode("Identity", name, {value}, {}, {type}, {name})).outputs[0];
    }
    AddOwnOutput(&graph_, value, name);
  }
  graph_.SetOutputExtents(source_.output_extents());
  return std::move(graph_);
}

}  // namespace fusion::ecg
