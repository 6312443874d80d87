#include "compiler/ops/registry/def_parts.h"

#include "absl/strings/str_cat.h"
#include "compiler/ops/shared/axes.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {

double NoFlops(const OpContext&, const std::vector<ecg::ValueType>&) { return 0; }

absl::StatusOr<std::vector<int64_t>> DistinctAxes(const OpContext& context, std::vector<int64_t> axes, int rank) {
  std::vector<bool> seen(rank, false);
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, NormalizeAxis(context, axis, rank));
    if (seen[axis]) return context.Error(absl::StrCat("axis ", axis, " is given twice"));
    seen[axis] = true;
  }
  return axes;
}

absl::Status ExpectInteger(const OpContext& context, int i, const char* input_name) {
  const DType dtype = context.Type(i).dtype;
  if (dtype == DType::kI32 || dtype == DType::kI64) return absl::OkStatus();
  return context.Error(
      absl::StrCat("input '", input_name, "' has type ", DTypeName(dtype), ", i32 or i64 is required"));
}

Tensor IntsTensor(const std::vector<int64_t>& values) {
  return Tensor::From(DType::kI64, {static_cast<int64_t>(values.size())}, values);
}

void DefineMap(LowerContext& context, int o, const std::function<te::Scalar(const te::Builder::Idx& i)>& body) {
  const ecg::ValueType& type = context.output_types[o];
  const bool empty = NumElements(type.shape) == 0;
  context.out.resize(context.output_types.size(), -1);
  context.out[o] = context.builder->Map(context.op, type.dtype, type.shape, [&](const te::Builder::Idx& i) {
    return empty ? te::Imm(type.dtype, 0) : body(i);
  });
}

te::Scalar CountedIndex(const te::Scalar& given, int64_t extent) {
  const te::Scalar index = te::Cast(DType::kI64, given);
  return te::Select(te::Call(te::Op::kLt, {index, te::ImmInt(DType::kI64, 0)}), index + te::ImmInt(DType::kI64, extent),
                    index);
}

te::Scalar ClampedIndex(const te::Scalar& x, int64_t extent) {
  const DType dtype = x->dtype;
  // The float is clamped before the cast, because a cast is defined only within the range of the integer.
  const te::Scalar inside = te::Max(te::Min(x, te::Imm(dtype, static_cast<double>(extent - 1))), te::Imm(dtype, 0));
  const te::Scalar index = te::Cast(DType::kI64, inside);
  return te::Max(te::Min(index, te::ImmInt(DType::kI64, extent - 1)), te::ImmInt(DType::kI64, 0));
}

}  // namespace fusion::ops
