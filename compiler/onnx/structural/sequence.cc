// Sequences: lists of values whose length and positions import knows.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/node_order.h"
#include "compiler/onnx/structural/structural_op.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

using Kind = ImportedValue::Kind;
using Values = std::vector<ImportedValue>;
using Results = absl::StatusOr<Values>;

absl::StatusOr<const Values*> SequenceInput(const StructuralNode& node, size_t i) {
  ASSIGN_OR_RETURN(const ImportedValue* value, node.Input(i, Kind::kSequence));
  return &value->elements;
}

// Returns the position in [0, limit), counted from the end where it is negative; nullopt if it is computed at run time.
absl::StatusOr<std::optional<int64_t>> Position(StructuralContext& importer, const StructuralNode& node, size_t input,
                                                int64_t length, int64_t limit) {
  ASSIGN_OR_RETURN(const ecg::ValueId value, node.TensorInput(input));
  ASSIGN_OR_RETURN(std::optional<int64_t> position, KnownInt(importer, node, value, "its position"));
  if (!position.has_value()) return position;
  if (*position < 0) *position += length;
  if (*position < 0 || *position >= limit) {
    return node.Error(absl::StrCat("position ", *position, " of a sequence of ", length, " elements"));
  }
  return position;
}

absl::Status PositionUnknown(const StructuralNode& node) {
  return node.Unsupported("its position is computed at run time; it must be a constant");
}

Results Construct(StructuralContext&, const StructuralNode& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) RETURN_IF_ERROR(node.TensorInput(i).status());
  return Values{ImportedValue::Sequence(node.inputs)};
}

Results Empty(StructuralContext&, const StructuralNode&) { return Values{ImportedValue::Sequence({})}; }

// Elements whose extents differ or depend on data are selected one by one, as the branches of an If are.
Results SelectElement(StructuralContext& importer, const StructuralNode& node, const Values& elements,
                      ecg::ValueId index) {
  const DType dtype = importer.canonical().graph.value(index).type.dtype;
  const auto is = [&](int64_t position) {
    return importer.AddNode("Equal", {index, importer.AddConstant(Tensor::From<int64_t>(dtype, {}, {position}))});
  };
  const auto length = static_cast<int64_t>(elements.size());
  ImportedValue result = elements[0];
  for (int64_t i = 1; i < length; ++i) {
    ASSIGN_OR_RETURN(const ecg::ValueId from_start, is(i));
    ASSIGN_OR_RETURN(const ecg::ValueId from_end, is(i - length));
    ASSIGN_OR_RETURN(const ecg::ValueId here, importer.AddNode("Or", {from_start, from_end}));
    ASSIGN_OR_RETURN(result, Select(importer, node, here, elements[i], result, "its result"));
  }
  return Values{std::move(result)};
}

Results At(StructuralContext& importer, const StructuralNode& node) {
  ASSIGN_OR_RETURN(const Values* elements, SequenceInput(node, 0));
  const auto length = static_cast<int64_t>(elements->size());
  ASSIGN_OR_RETURN(const std::optional<int64_t> position, Position(importer, node, 1, length, length));
  if (position.has_value()) return Values{(*elements)[*position]};
  if (elements->empty()) return PositionUnknown(node);
  std::vector<ecg::ValueId> tensors;
  bool alike = true;
  for (const ImportedValue& element : *elements) {
    tensors.push_back(element.tensor);
    const CanonicalGraph& canonical = importer.canonical();
    const ecg::ValueType &type = canonical.graph.value(tensors.back()).type,
                         &first = canonical.graph.value(tensors[0]).type;
    if (type.dtype != first.dtype || type.shape.size() != first.shape.size()) return PositionUnknown(node);
    alike = alike && type == first && !canonical.extents.IsDynamic(tensors.back());
  }
  ASSIGN_OR_RETURN(const ecg::ValueId index, AsScalar(importer, node.inputs[1].tensor));
  if (!alike) return SelectElement(importer, node, *elements, index);
  // Elements of equal type are stacked into one tensor with one more axis.
  ASSIGN_OR_RETURN(const ecg::ValueId stacked, Stack(importer, tensors, 0));
  ASSIGN_OR_RETURN(const ecg::ValueId element, importer.AddNode("Gather", {stacked, index}));
  return Values{ImportedValue::Tensor(element)};
}

Results Insert(StructuralContext& importer, const StructuralNode& node) {
  ASSIGN_OR_RETURN(const Values* elements, SequenceInput(node, 0));
  ASSIGN_OR_RETURN(const ImportedValue* element, node.Input(1, Kind::kTensor));
  const auto length = static_cast<int64_t>(elements->size());
  std::optional<int64_t> position = length;
  if (node.Has(2)) {
    ASSIGN_OR_RETURN(position, Position(importer, node, 2, length, length + 1));
  }
  if (!position.has_value()) return PositionUnknown(node);
  Values result = *elements;
  result.insert(result.begin() + *position, *element);
  return Values{ImportedValue::Sequence(std::move(result))};
}

Results Erase(StructuralContext& importer, const StructuralNode& node) {
  ASSIGN_OR_RETURN(const Values* elements, SequenceInput(node, 0));
  const auto length = static_cast<int64_t>(elements->size());
  std::optional<int64_t> position = length - 1;
  if (node.Has(1)) {
    ASSIGN_OR_RETURN(position, Position(importer, node, 1, length, length));
  }
  if (!position.has_value()) return PositionUnknown(node);
  if (elements->empty()) return node.Error("erases from an empty sequence");
  Values result = *elements;
  result.erase(result.begin() + *position);
  return Values{ImportedValue::Sequence(std::move(result))};
}

Results Length(StructuralContext& importer, const StructuralNode& node) {
  ASSIGN_OR_RETURN(const Values* elements, SequenceInput(node, 0));
  const auto length = static_cast<int64_t>(elements->size());
  return Values{ImportedValue::Tensor(importer.AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {length})))};
}

absl::StatusOr<int64_t> Axis(const StructuralNode& node, int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) return node.Error(absl::StrCat("axis ", axis, " is out of range for rank ", r));
  return axis < 0 ? axis + r : axis;
}

Values AsSequence(const std::vector<ecg::ValueId>& tensors) {
  Values elements;
  for (ecg::ValueId id : tensors) elements.push_back(ImportedValue::Tensor(id));
  return Values{ImportedValue::Sequence(std::move(elements))};
}

// Returns the lengths of the pieces of `extent` that the split input asks for: it gives one length for all, or each
// one's.
absl::StatusOr<std::vector<int64_t>> PieceLengths(StructuralContext& importer, const StructuralNode& node,
                                                  int64_t extent) {
  ASSIGN_OR_RETURN(const ecg::ValueId split, node.TensorInput(1));
  const ecg::Value& value = importer.canonical().graph.value(split);
  if (IsFloat(value.type.dtype) || value.type.shape.size() > 1) return node.Error("split must hold integers");
  if (!value.constant.has_value()) return node.Unsupported("split is computed at run time; it must be a constant");
  std::vector<int64_t> lengths;
  if (!value.type.shape.empty()) {
    for (int64_t i = 0; i < value.constant->num_elements(); ++i) lengths.push_back(value.constant->GetInt(i));
    return lengths;
  }
  const int64_t length = value.constant->GetInt(0);
  if (length < 1) return node.Error(absl::StrCat("splits into pieces of ", length));
  RETURN_IF_ERROR(importer.Charge(extent / length));
  for (int64_t begin = 0; begin < extent; begin += length) lengths.push_back(std::min(length, extent - begin));
  return lengths;
}

Results SplitToSequence(StructuralContext& importer, const StructuralNode& node) {
  ASSIGN_OR_RETURN(const ecg::ValueId tensor, node.TensorInput(0));
  const Shape shape = importer.canonical().graph.value(tensor).type.shape;
  ASSIGN_OR_RETURN(const int64_t axis, Axis(node, node.Int("axis", 0), shape.size()));
  if (!node.Has(1) && node.Int("keepdims", 1) == 0) {
    RETURN_IF_ERROR(importer.Charge(shape[axis]));
    if (shape[axis] == 0) return Values{ImportedValue::Sequence({})};
    ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> slices, Unstack(importer, tensor, axis));
    return AsSequence(slices);
  }
  std::vector<int64_t> lengths;
  if (node.Has(1)) {
    ASSIGN_OR_RETURN(lengths, PieceLengths(importer, node, shape[axis]));
  } else {
    RETURN_IF_ERROR(importer.Charge(shape[axis]));
    lengths.assign(shape[axis], 1);
  }
  if (lengths.empty()) return Values{ImportedValue::Sequence({})};
  ecg::Attributes attrs;
  attrs.Set("axis", axis);
  const int count = static_cast<int>(lengths.size());
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> pieces,
                   importer.AddNodes("Split", {tensor, importer.AddInts(lengths)}, std::move(attrs), count));
  return AsSequence(pieces);
}

Results ConcatFromSequence(StructuralContext& importer, const StructuralNode& node) {
  ASSIGN_OR_RETURN(const Values* elements, SequenceInput(node, 0));
  if (elements->empty()) return node.Unsupported("concatenates an empty sequence");
  std::vector<ecg::ValueId> tensors;
  for (const ImportedValue& element : *elements) tensors.push_back(element.tensor);
  const bool new_axis = node.Int("new_axis", 0) != 0;
  const size_t rank = importer.canonical().graph.value(tensors[0]).type.shape.size() + (new_axis ? 1 : 0);
  ASSIGN_OR_RETURN(const int64_t axis, Axis(node, node.Int("axis", 0), rank));
  if (new_axis) {
    ASSIGN_OR_RETURN(const ecg::ValueId stacked, Stack(importer, tensors, axis));
    return Values{ImportedValue::Tensor(stacked)};
  }
  ecg::Attributes attrs;
  attrs.Set("axis", axis);
  ASSIGN_OR_RETURN(const ecg::ValueId joined, importer.AddNode("Concat", std::move(tensors), std::move(attrs)));
  return Values{ImportedValue::Tensor(joined)};
}

// Applies the body to each element of the first sequence, together with the same element of other sequences. Tensors
// are passed to each application unchanged.
Results Map(StructuralContext& importer, const StructuralNode& node) {
  ASSIGN_OR_RETURN(const Values* elements, SequenceInput(node, 0));
  ASSIGN_OR_RETURN(onnx::GraphProto * body, node.Graph("body"));
  if (body->input_size() != static_cast<int>(node.inputs.size()) || body->output_size() < node.proto->output_size()) {
    return node.Error("its inputs or outputs and its body's do not match");
  }
  Values outputs(node.proto->output_size(), ImportedValue::Sequence({}));
  for (size_t i = 0; i < elements->size(); ++i) {
    StructuralContext::Bindings bound;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ImportedValue& input = node.inputs[k];
      const bool sequence = input.kind == Kind::kSequence;
      if (sequence && input.elements.size() != elements->size()) {
        return node.Error(absl::StrCat("sequences of ", elements->size(), " and ", input.elements.size(), " elements"));
      }
      bound.emplace_back(body->input(static_cast<int>(k)).name(), sequence ? input.elements[i] : input);
    }
    auto results = importer.Inline(body, bound, absl::StrCat(NodeName(*node.proto), "[", i, "]/"));
    if (!results.ok()) return Annotate(results.status(), node.title);
    for (size_t k = 0; k < outputs.size(); ++k) outputs[k].elements.push_back((*results)[k]);
  }
  return outputs;
}

}  // namespace

std::vector<StructuralOp> SequenceOps() {
  return {{"SequenceConstruct", Construct},
          {"SequenceEmpty", Empty},
          {"SequenceAt", At},
          {"SequenceInsert", Insert},
          {"SequenceErase", Erase},
          {"SequenceLength", Length},
          {"SplitToSequence", SplitToSequence},
          {"ConcatFromSequence", ConcatFromSequence},
          {"SequenceMap", Map}};
}

}  // namespace fusion::onnx_import
