#include "compiler/ops/registry/op_def.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ops/registry/schema.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

bool Matches(AttrKind kind, const ecg::Attribute& value) {
  switch (kind) {
    case AttrKind::kInt:
      return std::holds_alternative<int64_t>(value);
    case AttrKind::kFloat:
      return std::holds_alternative<double>(value);
    case AttrKind::kString:
      return std::holds_alternative<std::string>(value);
    case AttrKind::kInts:
      return std::holds_alternative<std::vector<int64_t>>(value);
    case AttrKind::kFloats:
      return std::holds_alternative<std::vector<double>>(value);
    case AttrKind::kStrings:
      return std::holds_alternative<std::vector<std::string>>(value);
    case AttrKind::kTensor:
      return std::holds_alternative<Tensor>(value);
  }
  return false;
}

const AttrSpec* FindAttr(const OpDef& def, const std::string& name) {
  const auto spec = std::find_if(def.attrs.begin(), def.attrs.end(), [&](const AttrSpec& s) { return s.name == name; });
  return spec == def.attrs.end() ? nullptr : &*spec;
}

absl::Status CheckChoice(const AttrSpec& spec, const ecg::Attribute& value, const OpContext& context) {
  const std::string* text = std::get_if<std::string>(&value);
  if (text == nullptr || spec.choices.empty()) return absl::OkStatus();
  if (std::find(spec.choices.begin(), spec.choices.end(), *text) != spec.choices.end()) return absl::OkStatus();
  return context.Error(absl::StrCat("attribute '", spec.name, "' is '", absl::Utf8SafeCHexEscape(*text), "', one of ",
                                    absl::StrJoin(spec.choices, ", "), " is required"));
}

}  // namespace

absl::Status CheckSchema(const OpDef& def, const OpContext& context, int num_outputs) {
  const int given = static_cast<int>(context.inputs.size());
  if (def.max_inputs >= 0 && given > def.max_inputs) {
    return context.Error(absl::StrCat("has ", given, " inputs, at most ", def.max_inputs, " are allowed"));
  }
  // Every input of an operator with any number of inputs must be present.
  for (int i = 0; i < (def.max_inputs < 0 ? std::max(def.min_inputs, given) : def.min_inputs); ++i) {
    if (!context.Has(i)) return context.Error(absl::StrCat("input ", i, " is missing"));
  }
  if (def.num_outputs >= 0 && num_outputs > def.num_outputs) {
    return context.Error(absl::StrCat("has ", num_outputs, " outputs, at most ", def.num_outputs, " are allowed"));
  }
  for (const auto& [name, value] : context.attrs.all()) {
    const AttrSpec* const spec = FindAttr(def, name);
    if (spec == nullptr) return context.Error(absl::StrCat("unknown attribute '", absl::Utf8SafeCHexEscape(name), "'"));
    if (!Matches(spec->kind, value)) return context.Error(absl::StrCat("attribute '", name, "' has the wrong type"));
    RETURN_IF_ERROR(CheckChoice(*spec, value, context));
  }
  for (const AttrSpec& spec : def.attrs) {
    if (spec.required && !context.attrs.Has(spec.name)) {
      return context.Error(absl::StrCat("attribute '", spec.name, "' is missing"));
    }
  }
  return absl::OkStatus();
}

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

namespace {

// Refuses arithmetic on narrow types: ONNX defines none, and kernels do not wrap or round what they compute in them.
absl::Status CheckNarrowTypes(const OpDef& def, const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
  if (def.narrow_types || !def.flops) return absl::OkStatus();
  std::vector<DType> types;
  for (const ecg::Value* input : context.inputs) {
    if (input != nullptr) types.push_back(input->type.dtype);
  }
  for (const ecg::ValueType& output : outputs) types.push_back(output.dtype);
  for (DType type : types) {
    if (type <= DType::kBool || def.flops(context, outputs) == 0) continue;
    return context.Error(absl::StrCat(DTypeName(type), " is converted and moved only: Cast or DequantizeLinear gives ",
                                      "a type to compute with"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ecg::ValueType>> InferTypes(const OpContext& context, int num_outputs) {
  const OpDef* def = FindOp(context.op);
  if (def == nullptr) return absl::UnimplementedError(absl::StrCat("unknown operator '", context.op, "'"));
  RETURN_IF_ERROR(CheckSchema(*FindOp(context.op), context, num_outputs));
  if (!def->infer) return absl::InternalError(absl::StrCat(context.op, " exists only until it is normalised"));
  ASSIGN_OR_RETURN(std::vector<ecg::ValueType> types, def->infer(context, num_outputs));
  RETURN_IF_ERROR(CheckNarrowTypes(*def, context, types));
  for (const ecg::ValueType& type : types) {
    const absl::Status size = CheckedSizeBytes(type.shape, type.dtype).status();
    if (!size.ok())
      return context.Error(absl::StrCat("output of shape ", ShapeToString(type.shape), ": ", size.message()));
  }
  if (static_cast<int>(types.size()) > num_outputs) types.resize(num_outputs);  // trailing optional outputs
  return types;
}

}  // namespace fusion::ops
