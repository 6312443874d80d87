// Values clamped for a cast that saturates: casts themselves do not.
#ifndef FUSION_COMPILER_OPS_SATURATE_H_
#define FUSION_COMPILER_OPS_SATURATE_H_

#include "compiler/ops/elementwise.h"
#include "runtime/base/narrow_float.h"

namespace fusion::ops {

// x, as f32 or wider, within the finite values of a float of 8 bits; NaN stays. x itself for other types: wider floats
// have infinities, narrower ones hold every value anyway.
inline te::Scalar HeldForFloat8(const te::Scalar& x, DType to) {
  if (!IsByteFloat(to) || to == DType::kF8E8M0 || DTypeBits(to) != 8) return x;
  const DType wide = x->dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const double most = LargestNarrow(to);
  return te::Max(te::Min(te::Cast(wide, x), te::Imm(wide, most)), te::Imm(wide, -most));
}

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SATURATE_H_
