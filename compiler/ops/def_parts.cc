#include "compiler/ops/def_parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {

std::function<MappingType(const OpContext&, int)> AlwaysMapping(MappingType type) {
  return [type](const OpContext&, int) { return type; };
}

double NoFlops(const OpContext&, const std::vector<ecg::ValueType>&) { return 0; }

absl::StatusOr<int64_t> CountedAxis(const OpContext& context, int64_t axis, int rank, bool inclusive) {
  const int64_t counted = axis < 0 ? axis + rank : axis;
  if (counted < 0 || counted >= rank + (inclusive ? 1 : 0)) {
    return context.Error(absl::StrCat("axis ", axis, " is outside a tensor of rank ", rank));
  }
  return counted;
}

absl::StatusOr<std::vector<int64_t>> CountedAxes(const OpContext& context, std::vector<int64_t> axes, int rank) {
  std::vector<bool> seen(rank, false);
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, CountedAxis(context, axis, rank));
    if (seen[axis]) return context.Error(absl::StrCat("axis ", axis, " is given twice"));
    seen[axis] = true;
  }
  return axes;
}

absl::Status ExpectInteger(const OpContext& context, int i, const char* input_name) {
  if (IsInteger(context.Type(i).dtype)) return absl::OkStatus();
  return context.Error(absl::StrCat("input '", input_name, "' has type ", DTypeName(context.Type(i).dtype),
                                    ", an integer type is required"));
}

absl::StatusOr<DType> ElementType(const OpContext& context, int64_t onnx_type) {
  switch (onnx_type) {
    case 1: return DType::kF32;
    case 2: return DType::kU8;
    case 3: return DType::kI8;
    case 4: return DType::kU16;
    case 5: return DType::kI16;
    case 6: return DType::kI32;
    case 7: return DType::kI64;
    case 9: return DType::kBool;
    case 10: return DType::kF16;
    case 11: return DType::kF64;
    case 12: return DType::kU32;
    case 13: return DType::kU64;
    case 16: return DType::kBF16;
    default: return context.Unsupported(absl::StrCat("element type ", onnx_type, " is not supported"));
  }
}

Tensor IntsTensor(const std::vector<int64_t>& values) {
  return Tensor::From(DType::kI64, {static_cast<int64_t>(values.size())}, values);
}

void AttributeToInput(ImportContext& import, const std::string& attribute, int input) {
  ecg::Node& node = import.node();
  if (!node.attrs.Has(attribute)) return;
  const ecg::ValueId value = import.AddConstant(IntsTensor(node.attrs.Ints(attribute)));
  node.attrs.Erase(attribute);
  if (static_cast<int>(node.inputs.size()) <= input) node.inputs.resize(input + 1, ecg::kNone);
  node.inputs[input] = value;
}

void DefineMap(LowerContext& context, int o, const std::function<te::Scalar(const te::Builder::Idx& i)>& body) {
  const ecg::ValueType& type = context.output_types[o];
  const bool empty = NumElements(type.shape) == 0;
  context.out.resize(context.output_types.size(), -1);
  context.out[o] = context.builder->Map(context.op, type.dtype, type.shape, [&](const te::Builder::Idx& i) {
    return empty ? te::Imm(type.dtype, 0) : body(i);
  });
}

DType AccumulatorType(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

}  // namespace fusion::ops
