// Kernels of operations, and of conversions between element types.
#ifndef FUSION_COMPILER_TE_INTERPRETER_LANE_NUMBERS_H_
#define FUSION_COMPILER_TE_INTERPRETER_LANE_NUMBERS_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "compiler/te/interpreter/lanes.h"

namespace fusion::te::lanes {

// dst = op(a, b, c). Returns null where the operation is not defined on the type. Comparisons and predicates write
// integers. imm is the width of the type in bits (for shifts).
LaneKernel OpKernel(Op op, DType dtype);

// Rounds doubles to a float type; null for f64.
LaneKernel RoundKernel(DType dtype);
// Wraps an int64 to an integer type; null for i64 and u64. For bool: != 0.
LaneKernel WrapKernel(DType dtype);
LaneKernel DoubleToIntKernel(DType dtype);  // towards zero, saturating at 64 bits; NaN gives 0; bool: != 0
LaneKernel IntToDoubleKernel(DType dtype);  // dtype: the integer's type

// Rounds towards zero and saturates; NaN gives 0. The unsigned form gives the bits of a uint64_t.
template <bool kUnsigned>
int64_t SaturateToInt(double a) {
  if constexpr (kUnsigned) {
    if (a >= 9223372036854775808.0)
      return a >= 18446744073709551616.0 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(a));
  }
  if (std::isnan(a)) return 0;
  if (a >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (a <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(a);
}

}  // namespace fusion::te::lanes

#endif  // FUSION_COMPILER_TE_INTERPRETER_LANE_NUMBERS_H_
