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

absl::StatusOr<std::optional<int64_t>> KnownInt(StructuralContext& importer, const StructuralNode& node,
                                                ecg::ValueId value, const std::string& what) {
  const ecg::Value& v = importer.canonical().graph.value(value);
  if (IsFloat(v.type.dtype) || NumElements(v.type.shape) != 1) {
    return node.Error(absl::StrCat(what, " is ", TypeText(v.type), ", it must be one integer or bool"));
  }
  if (!v.constant.has_value()) return std::nullopt;
  return v.constant->GetInt(0);
}

absl::StatusOr<ecg::ValueId> AsScalar(StructuralContext& importer, ecg::ValueId value) {
  if (importer.canonical().graph.value(value).type.shape.empty()) return value;
  return importer.AddNode("Reshape", {value, importer.AddInts({})});
}

namespace {

// Returns `value` enlarged to `bounds`; the elements added are arbitrary.
absl::StatusOr<ecg::ValueId> Widened(CanonicalGraph& canonical, ecg::ValueId value, const Shape& bounds) {
  const Shape shape = canonical.graph.value(value).type.shape;
  if (shape == bounds) return value;
  std::vector<int64_t> pads(bounds.size(), 0);
  for (size_t d = 0; d < bounds.size(); ++d) pads.push_back(bounds[d] - shape[d]);
  ecg::Node pad;
  pad.op = "Pad";
  const auto count = static_cast<int64_t>(pads.size());
  pad.inputs = {value, canonical.graph.AddConstant("", Tensor::From<int64_t>(DType::kI64, {count}, pads))};
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> outputs, canonical.AddBounded(pad, 1));
  return outputs[0];
}

// Selects between values of one rank but of different extents: at the larger bounds, with the extents selected, too.
absl::StatusOr<ecg::ValueId> SelectOfExtents(StructuralContext& importer, ecg::ValueId condition, ecg::ValueId a,
                                             ecg::ValueId b) {
  CanonicalGraph& canonical = importer.canonical();
  Shape bounds = canonical.graph.value(a).type.shape;
  for (size_t d = 0; d < bounds.size(); ++d) {
    bounds[d] = std::max(bounds[d], canonical.graph.value(b).type.shape[d]);
  }
  std::vector<ecg::ValueId> extents = canonical.extents.Of(a);
  for (size_t d = 0; d < bounds.size(); ++d) {
    const auto dim = static_cast<int>(d);
    const bool differ = extents[d] != canonical.extents.Of(b, dim) ||
                        canonical.graph.value(a).type.shape[d] != canonical.graph.value(b).type.shape[d];
    if (!differ) continue;
    ASSIGN_OR_RETURN(extents[d],
                     importer.AddNode("Where", {condition, canonical.Extent(a, dim), canonical.Extent(b, dim)}));
  }
  ecg::Node where;
  where.op = "Where";
  ASSIGN_OR_RETURN(a, Widened(canonical, a, bounds));
  ASSIGN_OR_RETURN(b, Widened(canonical, b, bounds));
  where.inputs = {condition, a, b};
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> outputs, canonical.AddBounded(where, 1));
  return canonical.WithExtents(outputs[0], std::move(extents));
}

}  // namespace

absl::StatusOr<ImportedValue> Select(StructuralContext& importer, const StructuralNode& node, ecg::ValueId condition,
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
  if (type_a.dtype != type_b.dtype || type_a.shape.size() != type_b.shape.size()) {
    return node.Unsupported(
        absl::StrCat(cannot, "and is ", TypeText(type_a), " or ", TypeText(type_b), "; type and rank must be known"));
  }
  const Extents& extents = importer.canonical().extents;
  if (!(type_a == type_b) || extents.IsDynamic(a.tensor) || extents.IsDynamic(b.tensor)) {
    ASSIGN_OR_RETURN(const ecg::ValueId value, SelectOfExtents(importer, condition, a.tensor, b.tensor));
    return ImportedValue::Tensor(value);
  }
  ASSIGN_OR_RETURN(const ecg::ValueId value, importer.AddNode("Where", {condition, a.tensor, b.tensor}));
  return ImportedValue::Tensor(value);
}

absl::StatusOr<ecg::ValueId> Stack(StructuralContext& importer, const std::vector<ecg::ValueId>& tensors,
                                   int64_t axis) {
  std::vector<ecg::ValueId> slices;
  for (ecg::ValueId tensor : tensors) {
    ASSIGN_OR_RETURN(slices.emplace_back(), importer.AddNode("Unsqueeze", {tensor, importer.AddInts({axis})}));
  }
  if (slices.size() == 1) return slices[0];
  ecg::Attributes attrs;
  attrs.Set("axis", axis);
  return importer.AddNode("Concat", std::move(slices), std::move(attrs));
}

absl::StatusOr<std::vector<ecg::ValueId>> Unstack(StructuralContext& importer, ecg::ValueId tensor, int64_t axis) {
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
