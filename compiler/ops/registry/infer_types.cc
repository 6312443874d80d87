#include "compiler/ops/registry/infer_types.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ecg/rounded.h"
#include "compiler/ops/registry/schema.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
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

// Kernels contract products of f32 and f64 only. Narrower floats are rounded wherever they are results.
absl::Status CheckRounded(const OpDef& def, const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
  const auto attribute = context.attrs.all().find(ecg::kRounded);
  if (attribute == context.attrs.all().end()) return absl::OkStatus();
  const int64_t* const value = std::get_if<int64_t>(&attribute->second);
  if (value == nullptr || *value != 1) {
    return context.Error(absl::StrCat("attribute '", ecg::kRounded, "' is 1, or absent"));
  }
  const bool contracts = def.lower && std::any_of(outputs.begin(), outputs.end(), [](const ecg::ValueType& type) {
                           return type.dtype == DType::kF32 || type.dtype == DType::kF64;
                         });
  if (contracts) return absl::OkStatus();
  return context.Error(absl::StrCat("attribute '", ecg::kRounded,
                                    "' rounds results of f32 and f64 that kernels compute, and there are none"));
}

}  // namespace

absl::StatusOr<std::vector<ecg::ValueType>> InferTypes(const OpContext& context, int num_outputs) {
  const OpDef* def = FindOp(context.op);
  if (def == nullptr) return absl::UnimplementedError(absl::StrCat("unknown operator '", context.op, "'"));
  RETURN_IF_ERROR(CheckSchema(*FindOp(context.op), context, num_outputs));
  if (!def->infer) return absl::InternalError(absl::StrCat(context.op, " exists only until it is normalised"));
  ASSIGN_OR_RETURN(std::vector<ecg::ValueType> types, def->infer(context, num_outputs));
  RETURN_IF_ERROR(CheckNarrowTypes(*def, context, types));
  RETURN_IF_ERROR(CheckRounded(*def, context, types));
  for (const ecg::ValueType& type : types) {
    const absl::Status size = CheckedSizeBytes(type.shape, type.dtype).status();
    if (!size.ok())
      return context.Error(absl::StrCat("output of shape ", ShapeToString(type.shape), ": ", size.message()));
  }
  if (static_cast<int>(types.size()) > num_outputs) types.resize(num_outputs);  // trailing optional outputs
  return types;
}

}  // namespace fusion::ops
