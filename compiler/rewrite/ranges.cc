#include "compiler/rewrite/ranges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::rewrite {

te::Known RangeOf(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
                  const std::vector<const te::Known*>& ranges, const std::vector<ecg::ValueType>& types,
                  size_t output) {
  ecg::Graph alone;
  std::map<ecg::ValueId, te::Known> known;
  std::map<const ecg::Value*, ecg::ValueId> placed;  // an operand that occurs twice is one tensor
  std::vector<ecg::ValueId> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      operands.push_back(ecg::kNone);
      continue;
    }
    const auto [it, is_new] = placed.emplace(inputs[i], ecg::kNone);
    if (is_new) {
      it->second = inputs[i]->constant.has_value() && !inputs[i]->opaque ? alone.AddConstant("", *inputs[i]->constant)
                                                                         : alone.AddInput("", inputs[i]->type);
      known[it->second] = *ranges[i];
    }
    operands.push_back(it->second);
  }
  const ecg::NodeId id = alone.AddNode(node.op, node.name, std::move(operands), node.attrs, types);
  const std::vector<ecg::ValueId> outputs = alone.node(id).outputs;
  const auto lowered = ops::LowerNodes(alone, {id}, outputs);
  if (!lowered.ok()) return {};
  std::vector<std::optional<te::KnownTensor>> arguments;
  for (const te::TensorId tensor : lowered->program.inputs) {
    const auto it = known.find(lowered->value_of_tensor[tensor]);
    arguments.push_back(it == known.end() ? std::nullopt : std::optional(te::KnownTensor{it->second}));
  }
  const auto result = te::Know(lowered->program, arguments, te::Detail::kRanges);
  if (output >= result.size() || !result[output] || result[output]->empty()) return {};
  te::Known range = result[output]->front();
  range.linear = false;  // its symbols belong to the program and mean nothing in the graph
  range.terms.clear();
  return range;
}

// Returns "" where something is known of an operand, or where the node has attributes.
std::string Ranges::KeyOfUnknown(const ecg::Node& node) const {
  if (!node.attrs.all().empty() || node.outputs.size() != 1) return "";
  std::string key = node.op;
  for (const ecg::ValueId input : node.inputs) {
    if (input == ecg::kNone || graph_.value(input).constant.has_value()) return "";
    const te::Known& range = known_.at(input);
    if (range.number || !range.negative_zero || range.least > 0 || !std::isinf(range.lo) || !std::isinf(range.hi)) {
      return "";
    }
    const bool again = input == node.inputs[0] && &input != node.inputs.data();  // x·x is not x·y
    absl::StrAppend(&key, again ? " =" : " ", DTypeName(graph_.value(input).type.dtype),
                    ShapeToString(graph_.value(input).type.shape));
  }
  return node.inputs.size() > 2 ? "" : key;
}

const te::Known& Ranges::Of(ecg::ValueId wanted) {
  std::vector<ecg::ValueId> stack{wanted};
  while (!stack.empty()) {
    const ecg::ValueId id = stack.back();
    if (known_.count(id) != 0) {
      stack.pop_back();
      continue;
    }
    const ecg::Value& value = graph_.value(id);
    if (value.constant.has_value() || value.producer == ecg::kNone) {
      known_[id] = value.constant.has_value() && !value.opaque ? te::RangeOf(*value.constant) : te::Known();
      stack.pop_back();
      continue;
    }
    const ecg::Node& node = graph_.node(value.producer);
    const size_t before = stack.size();
    for (const ecg::ValueId input : node.inputs) {
      if (input != ecg::kNone && known_.count(input) == 0) stack.push_back(input);
    }
    if (stack.size() != before) continue;
    stack.pop_back();
    std::vector<const ecg::Value*> inputs;
    std::vector<const te::Known*> ranges;
    for (const ecg::ValueId input : node.inputs) {
      inputs.push_back(input == ecg::kNone ? nullptr : &graph_.value(input));
      ranges.push_back(input == ecg::kNone ? nullptr : &known_.at(input));
    }
    std::vector<ecg::ValueType> types;
    size_t output = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      types.push_back(graph_.value(node.outputs[i]).type);
      if (node.outputs[i] == id) output = i;
    }
    const std::string key = KeyOfUnknown(node);
    if (const auto it = of_unknown_.find(key); !key.empty() && it != of_unknown_.end()) {
      known_[id] = it->second;
      continue;
    }
    known_[id] = RangeOf(node, inputs, ranges, types, output);
    if (!key.empty()) of_unknown_[key] = known_[id];
  }
  return known_.at(wanted);
}

}  // namespace fusion::rewrite
