#include "compiler/ecg/graph.h"

#include <algorithm>
#include <utility>

namespace fusion::ecg {
namespace {

template <typename T>
const T* Get(const std::map<std::string, Attribute>& map, const std::string& name) {
  auto it = map.find(name);
  return it == map.end() ? nullptr : std::get_if<T>(&it->second);
}

template <typename T>
T GetOr(const std::map<std::string, Attribute>& map, const std::string& name, T otherwise) {
  const T* value = Get<T>(map, name);
  return value == nullptr ? std::move(otherwise) : *value;
}

}  // namespace

int64_t Attributes::Int(const std::string& name, int64_t otherwise) const { return GetOr(map_, name, otherwise); }

double Attributes::Float(const std::string& name, double otherwise) const { return GetOr(map_, name, otherwise); }

std::string Attributes::String(const std::string& name, const std::string& otherwise) const {
  return GetOr(map_, name, otherwise);
}

std::vector<int64_t> Attributes::Ints(const std::string& name, const std::vector<int64_t>& otherwise) const {
  return GetOr(map_, name, otherwise);
}

std::vector<double> Attributes::Floats(const std::string& name, const std::vector<double>& otherwise) const {
  return GetOr(map_, name, otherwise);
}

const Tensor* Attributes::GetTensor(const std::string& name) const { return Get<Tensor>(map_, name); }

ValueId Graph::AddInput(std::string name, ValueType type) {
  const ValueId id = static_cast<ValueId>(values_.size());
  Value& value = values_.emplace_back();
  value.name = std::move(name);
  value.type = std::move(type);
  inputs_.push_back(id);
  return id;
}

ValueId Graph::AddConstant(std::string name, Tensor tensor) {
  const ValueId id = static_cast<ValueId>(values_.size());
  Value& value = values_.emplace_back();
  value.name = std::move(name);
  value.type = ValueType{tensor.dtype(), tensor.shape()};
  value.constant = std::move(tensor);
  return id;
}

ValueId Graph::AddOpaqueConstant(std::string name, Tensor tensor) {
  const ValueId id = AddConstant(std::move(name), std::move(tensor));
  values_[id].opaque = true;
  return id;
}

NodeId Graph::AddNode(std::string op, std::string name, std::vector<ValueId> inputs, Attributes attrs,
                      std::vector<ValueType> output_types, std::vector<std::string> output_names) {
  const NodeId id = static_cast<NodeId>(nodes_.size());
  Node& node = nodes_.emplace_back();
  node.op = std::move(op);
  node.name = std::move(name);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  for (ValueId input : node.inputs) {
    if (input != kNone) values_[input].consumers.push_back(id);
  }
  output_names.resize(output_types.size());
  for (size_t i = 0; i < output_types.size(); ++i) {
    node.outputs.push_back(static_cast<ValueId>(values_.size()));
    Value& value = values_.emplace_back();
    value.name = std::move(output_names[i]);
    value.type = std::move(output_types[i]);
    value.producer = id;
  }
  return id;
}

void Graph::AddOutput(ValueId value, std::string name) {
  outputs_.push_back(value);
  output_names_.push_back(std::move(name));
}

void Graph::AddOutputExtent(int output, int dim, ValueId extent) {
  auto place = std::find(outputs_.begin(), outputs_.end(), extent) - outputs_.begin();
  if (place == static_cast<std::ptrdiff_t>(outputs_.size())) AddOutput(extent, "");
  output_extents_.push_back({output, dim, static_cast<int>(place)});
}

bool Graph::IsOutputWithExtents(ValueId id) const {
  return std::any_of(output_extents_.begin(), output_extents_.end(),
                     [&](const OutputExtent& extent) { return outputs_[extent.output] == id; });
}

bool Graph::IsOutput(ValueId id) const { return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end(); }

}  // namespace fusion::ecg
