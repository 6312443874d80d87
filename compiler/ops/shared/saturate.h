// Clamps values for a cast that saturates, because casts themselves do not.
#ifndef FUSION_COMPILER_OPS_SHARED_SATURATE_H_
#define FUSION_COMPILER_OPS_SHARED_SATURATE_H_

#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/narrow_float.h"

namespace fusion::ops {

// Returns x, as f32 or wider, clamped to the finite values of a float of 8 bits; NaN stays. For other types returns x
// itself: wider floats have infinities, and narrower types take the largest value anyway.
inline te::Scalar HeldForFloat8(const te::Scalar& x, DType to) {
  if (!IsByteFloat(to) || to == DType::kF8E8M0 || DTypeBits(to) != 8) return x;
  const DType wide = x->dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const double most = LargestNarrow(to);
  return te::Max(te::Min(te::Cast(wide, x), te::Imm(wide, most)), te::Imm(wide, -most));
}

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_SATURATE_H_
