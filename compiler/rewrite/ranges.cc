#include "compiler/rewrite/ranges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::rewrite {

te::ValueRange RangeOf(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
                       const std::vector<const te::ValueRange*>& ranges, const std::vector<ecg::ValueType>& types,
                       size_t output) {
  if (ops::IsLoopBoundary(node)) return {};  // what holds of one iteration does not hold of all
  ecg::Graph alone;
  std::map<ecg::ValueId, te::ValueRange> range_of;
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
      range_of[it->second] = *ranges[i];
    }
    operands.push_back(it->second);
  }
  const ecg::NodeId id = alone.AddNode(node.op, node.name, std::move(operands), node.attrs, types);
  const std::vector<ecg::ValueId> outputs = alone.node(id).outputs;
  const auto lowered = ops::LowerNodes(alone, {id}, outputs);
  if (!lowered.ok()) return {};
  std::vector<std::optional<te::TensorRanges>> arguments;
  for (const te::TensorId tensor : lowered->program.inputs) {
    const auto it = range_of.find(lowered->value_of_tensor[tensor]);
    arguments.push_back(it == range_of.end() ? std::nullopt : std::optional(te::TensorRanges{it->second}));
  }
  const auto result = te::InferRanges(lowered->program, arguments, te::Detail::kRanges);
  if (output >= result.size() || !result[output] || result[output]->empty()) return {};
  te::ValueRange range = result[output]->front();
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
    const te::ValueRange& range = ranges_.at(input);
    if (range.number || !range.negative_zero || range.least > 0 || !std::isinf(range.lo) || !std::isinf(range.hi)) {
      return "";
    }
    const bool again = input == node.inputs[0] && &input != node.inputs.data();  // x·x is not x·y
    absl::StrAppend(&key, again ? " =" : " ", DTypeName(graph_.value(input).type.dtype),
                    ShapeToString(graph_.value(input).type.shape));
  }
  return node.inputs.size() > 2 ? "" : key;
}

const te::ValueRange& Ranges::Of(ecg::ValueId wanted) {
  std::vector<ecg::ValueId> stack{wanted};
  while (!stack.empty()) {
    const ecg::ValueId id = stack.back();
    if (ranges_.count(id) != 0) {
      stack.pop_back();
      continue;
    }
    const ecg::Value& value = graph_.value(id);
    if (value.constant.has_value() || value.producer == ecg::kNone) {
      ranges_[id] = value.constant.has_value() && !value.opaque ? te::RangeOf(*value.constant) : te::ValueRange();
      stack.pop_back();
      continue;
    }
    const ecg::Node& node = graph_.node(value.producer);
    const size_t before = stack.size();
    for (const ecg::ValueId input : node.inputs) {
      if (input != ecg::kNone && ranges_.count(input) == 0) stack.push_back(input);
    }
    if (stack.size() != before) continue;
    stack.pop_back();
    std::vector<const ecg::Value*> inputs;
    std::vector<const te::ValueRange*> ranges;
    for (const ecg::ValueId input : node.inputs) {
      inputs.push_back(input == ecg::kNone ? nullptr : &graph_.value(input));
      ranges.push_back(input == ecg::kNone ? nullptr : &ranges_.at(input));
    }
    std::vector<ecg::ValueType> types;
    size_t output = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      types.push_back(graph_.value(node.outputs[i]).type);
      if (node.outputs[i] == id) output = i;
    }
    const std::string key = KeyOfUnknown(node);
    if (const auto it = of_unknown_.find(key); !key.empty() && it != of_unknown_.end()) {
      ranges_[id] = it->second;
      continue;
    }
    ranges_[id] = RangeOf(node, inputs, ranges, types, output);
    if (!key.empty()) of_unknown_[key] = ranges_[id];
  }
  return ranges_.at(wanted);
}

}  // namespace fusion::rewrite
