#include "compiler/ops/shared/elementwise.h"

#include "absl/strings/str_cat.h"

namespace fusion::ops {

absl::Status CheckDomain(const OpContext& context, int i, Domain domain) {
  const DType dtype = context.Type(i).dtype;
  bool ok = true;
  switch (domain) {
    case Domain::kFloat:
      ok = IsFloat(dtype);
      break;
    case Domain::kNumeric:
      ok = dtype != DType::kBool;
      break;
    case Domain::kInteger:
      ok = IsInteger(dtype);
      break;
    case Domain::kBool:
      ok = dtype == DType::kBool;
      break;
    case Domain::kAny:
      break;
  }
  if (ok) return absl::OkStatus();
  return context.Error(absl::StrCat("input ", i, " of type ", DTypeName(dtype), " is not allowed"));
}

absl::Status CheckSameType(const OpContext& context, int begin, int end) {
  int first = -1;
  for (int i = begin; i < end; ++i) {
    if (!context.Has(i)) continue;
    if (first < 0) first = i;
    if (context.Type(i).dtype != context.Type(first).dtype) {
      return context.Error(absl::StrCat("inputs have different types: ", DTypeName(context.Type(first).dtype), " and ",
                                        DTypeName(context.Type(i).dtype)));
    }
  }
  return absl::OkStatus();
}

DType ComputeType(DType dtype) { return IsNarrowFloat(dtype) ? DType::kF32 : dtype; }

te::Scalar LoadCompute(const te::Builder& builder, te::TensorId tensor, te::Builder::Idx index) {
  return te::Cast(ComputeType(builder.info(tensor).dtype), builder.At(tensor, std::move(index)));
}

double CountOps(const te::Scalar& body) {
  double ops = 0;
  te::Visit(body, [&](const te::ScalarNode& node) { ops += node.kind == te::ScalarKind::kOp; });
  return ops;
}

std::function<MappingType(const OpContext&, int)> Always(MappingType type) {
  return [type](const OpContext&, int) { return type; };
}

}  // namespace fusion::ops
