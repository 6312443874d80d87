#include "compiler/ops/registry/op_def.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace fusion::ops {

const char* MappingTypeName(MappingType type) {
  switch (type) {
    case MappingType::kOneToOne:
      return "One-to-One";
    case MappingType::kReorganize:
      return "Reorganize";
    case MappingType::kShuffle:
      return "Shuffle";
    case MappingType::kOneToMany:
      return "One-to-Many";
    case MappingType::kManyToMany:
      return "Many-to-Many";
  }
  return "?";
}

absl::StatusOr<std::vector<int64_t>> OpContext::ConstantInts(int i, const char* input_name) const {
  const Tensor* tensor = Constant(i);
  if (tensor == nullptr) {
    return Unsupported(absl::StrCat("input '", input_name, "' is computed at run time; it must be a constant"));
  }
  if (IsFloat(tensor->dtype())) return Error(absl::StrCat("input '", input_name, "' must hold integers"));
  std::vector<int64_t> values(tensor->num_elements());
  for (size_t k = 0; k < values.size(); ++k) values[k] = tensor->GetInt(static_cast<int64_t>(k));
  return values;
}

absl::Status OpContext::Error(const std::string& message) const {
  return absl::InvalidArgumentError(absl::StrCat(op, " '", absl::Utf8SafeCHexEscape(node_name), "': ", message));
}

absl::Status OpContext::Unsupported(const std::string& message) const {
  return absl::UnimplementedError(absl::StrCat(op, " '", absl::Utf8SafeCHexEscape(node_name), "': ", message));
}

OpContext MakeContext(const ecg::Graph& graph, const ecg::Node& node) {
  std::vector<const ecg::Value*> inputs;
  inputs.reserve(node.inputs.size());
  for (ecg::ValueId id : node.inputs) inputs.push_back(id == ecg::kNone ? nullptr : &graph.value(id));
  return OpContext(node.op, node.name, node.attrs, std::move(inputs));
}

MappingType NodeMapping(const ecg::Graph& graph, const ecg::Node& node) {
  const OpDef* def = FindOp(node.op);
  if (def == nullptr || !def->mapping) return MappingType::kManyToMany;
  const OpContext context = MakeContext(graph, node);
  MappingType result = MappingType::kOneToOne;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != ecg::kNone) result = std::max(result, def->mapping(context, static_cast<int>(i)));
  }
  return result;
}

double NodeFlops(const ecg::Graph& graph, const ecg::Node& node) {
  const OpDef* def = FindOp(node.op);
  if (def == nullptr || !def->flops) return 0;
  std::vector<ecg::ValueType> outputs;
  for (ecg::ValueId id : node.outputs) outputs.push_back(graph.value(id).type);
  return def->flops(MakeContext(graph, node), outputs);
}

}  // namespace fusion::ops
