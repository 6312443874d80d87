// Type check for inference with narrow types: types of less than a byte and floats of a byte
// (docs/decisions/0025-narrow-types.md).
#ifndef FUSION_COMPILER_OPS_SHARED_NARROW_TYPES_H_
#define FUSION_COMPILER_OPS_SHARED_NARROW_TYPES_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

// For an operator whose routine compares or packs elements: returns INVALID_ARGUMENT naming the node if input 0 is
// narrow.
inline absl::Status RefuseNarrowElements(const OpContext& context) {
  if (!context.Has(0) || context.Type(0).dtype <= DType::kBool) return absl::OkStatus();
  return context.Error(
      absl::StrCat(DTypeName(context.Type(0).dtype), " is converted and moved only: Cast gives a type for this operator"));
}

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_NARROW_TYPES_H_
