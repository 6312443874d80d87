#include "compiler/onnx/structural/structural_op.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

std::string TypeText(const ecg::ValueType& type) {
  return absl::StrCat(DTypeName(type.dtype), ShapeToString(type.shape));
}

}  // namespace

absl::Status StructuralNode::Error(const std::string& message) const {
  return absl::InvalidArgumentError(absl::StrCat(title, ": ", message));
}

absl::Status StructuralNode::Unsupported(const std::string& message) const {
  return absl::UnimplementedError(absl::StrCat(title, ": ", message));
}

onnx::AttributeProto* StructuralNode::Attribute(const std::string& name) const {
  auto* attributes = proto->mutable_attribute();
  auto it = std::find_if(attributes->begin(), attributes->end(), [&](const auto& a) { return a.name() == name; });
  return it == attributes->end() ? nullptr : &*it;
}

int64_t StructuralNode::Int(const std::string& name, int64_t otherwise) const {
  const onnx::AttributeProto* attribute = Attribute(name);
  return attribute == nullptr || !attribute->has_i() ? otherwise : attribute->i();
}

std::vector<int64_t> StructuralNode::Ints(const std::string& name) const {
  const onnx::AttributeProto* attribute = Attribute(name);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

absl::StatusOr<onnx::GraphProto*> StructuralNode::Graph(const std::string& name) const {
  onnx::AttributeProto* attribute = Attribute(name);
  if (attribute == nullptr || !attribute->has_g()) return Error(absl::StrCat("has no graph '", name, "'"));
  return attribute->mutable_g();
}

absl::StatusOr<const ImportedValue*> StructuralNode::Input(size_t i, ImportedValue::Kind kind) const {
  if (!Has(i)) return Error(absl::StrCat("input ", i, " is missing"));
  if (inputs[i].kind != kind) {
    return Error(absl::StrCat("input ", i, " is ", KindName(inputs[i].kind), ", it must be ", KindName(kind)));
  }
  return &inputs[i];
}

absl::StatusOr<ecg::ValueId> StructuralNode::TensorInput(size_t i) const {
  ASSIGN_OR_RETURN(const ImportedValue* value, Input(i, ImportedValue::Kind::kTensor));
  return value->tensor;
}

absl::StatusOr<std::optional<int64_t>> KnownInt(GraphImporter& importer, const StructuralNode& node, ecg::ValueId value,
                                                const std::string& what) {
  const ecg::Value& v = importer.canonical().graph.value(value);
  if (IsFloat(v.type.dtype) || NumElements(v.type.shape) != 1) {
    return node.Error(absl::StrCat(what, " is ", TypeText(v.type), ", it must be one integer or bool"));
  }
  if (!v.constant.has_value()) return std::nullopt;
  return v.constant->GetInt(0);
}

absl::StatusOr<ecg::ValueId> AsScalar(GraphImporter& importer, ecg::ValueId value) {
  if (importer.canonical().graph.value(value).type.shape.empty()) return value;
  return importer.AddNode("Reshape", {value, importer.AddInts({})});
}

absl::StatusOr<ImportedValue> Select(GraphImporter& importer, const StructuralNode& node, ecg::ValueId condition,
                                     const ImportedValue& a, const ImportedValue& b, const std::string& what) {
  const std::string cannot = absl::StrCat(what, " depends on a condition that is computed at run time, ");
  if (a.kind != b.kind) {
    return node.Unsupported(absl::StrCat(cannot, "and is ", KindName(a.kind), " or ", KindName(b.kind)));
  }
  if (a.kind != ImportedValue::Kind::kTensor) {
    if (a.elements.size() != b.elements.size()) {
      return node.Unsupported(absl::StrCat(cannot, "and has ", a.elements.size(), " or ", b.elements.size(),
                                           " elements; that must be known at compile time"));
    }
    ImportedValue result{a.kind, ecg::kNone, {}};
    for (size_t i = 0; i < a.elements.size(); ++i) {
      ASSIGN_OR_RETURN(ImportedValue element, Select(importer, node, condition, a.elements[i], b.elements[i], what));
      result.elements.push_back(std::move(element));
    }
    return result;
  }
  if (a.tensor == b.tensor) return a;
  const ecg::ValueType type_a = importer.canonical().graph.value(a.tensor).type;
  const ecg::ValueType type_b = importer.canonical().graph.value(b.tensor).type;
  if (!(type_a == type_b)) {
    return node.Unsupported(
        absl::StrCat(cannot, "and is ", TypeText(type_a), " or ", TypeText(type_b), "; its type must be known"));
  }
  ASSIGN_OR_RETURN(const ecg::ValueId value, importer.AddNode("Where", {condition, a.tensor, b.tensor}));
  return ImportedValue::Tensor(value);
}

absl::StatusOr<ecg::ValueId> Stack(GraphImporter& importer, const std::vector<ecg::ValueId>& tensors, int64_t axis) {
  std::vector<ecg::ValueId> slices;
  for (ecg::ValueId tensor : tensors) {
    ASSIGN_OR_RETURN(slices.emplace_back(), importer.AddNode("Unsqueeze", {tensor, importer.AddInts({axis})}));
  }
  if (slices.size() == 1) return slices[0];
  ecg::Attributes attrs;
  attrs.Set("axis", axis);
  return importer.AddNode("Concat", std::move(slices), std::move(attrs));
}

absl::StatusOr<std::vector<ecg::ValueId>> Unstack(GraphImporter& importer, ecg::ValueId tensor, int64_t axis) {
  const int64_t length = importer.canonical().graph.value(tensor).type.shape[axis];
  std::vector<ecg::ValueId> slices{tensor};
  if (length > 1) {
    ecg::Attributes attrs;
    attrs.Set("axis", axis);
    ASSIGN_OR_RETURN(slices, importer.AddNodes("Split", {tensor}, std::move(attrs), static_cast<int>(length)));
  }
  for (ecg::ValueId& slice : slices) {
    ASSIGN_OR_RETURN(slice, importer.AddNode("Squeeze", {slice, importer.AddInts({axis})}));
  }
  return slices;
}

}  // namespace fusion::onnx_import
