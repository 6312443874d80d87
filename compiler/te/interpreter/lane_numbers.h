// Kernels of operations, and of conversions between element types.
#ifndef FUSION_COMPILER_TE_INTERPRETER_LANE_NUMBERS_H_
#define FUSION_COMPILER_TE_INTERPRETER_LANE_NUMBERS_H_

#include "compiler/te/interpreter/lanes.h"
#include "runtime/base/number_ops.h"

namespace fusion::te::lanes {

// dst = op(a, b, c). Returns null where the operation is not defined on the type. Comparisons and predicates write
// integers. imm is the width of the type in bits (for shifts).
LaneKernel OpKernel(Op op, DType dtype);

// Rounds doubles to a float type; null for f64.
LaneKernel RoundKernel(DType dtype);
// Wraps an int64 to an integer type; null for i64 and u64. For bool: != 0.
LaneKernel WrapKernel(DType dtype);
LaneKernel DoubleToIntKernel(DType dtype);  // towards zero, saturating at 64 bits; NaN gives 0; bool: != 0
// To f64, or to f32, whence RoundKernel goes on to narrower types: what f64 does not hold would be rounded twice.
LaneKernel IntToFloatKernel(DType from, DType to);

using numbers::SaturateToInt;

}  // namespace fusion::te::lanes

#endif  // FUSION_COMPILER_TE_INTERPRETER_LANE_NUMBERS_H_
