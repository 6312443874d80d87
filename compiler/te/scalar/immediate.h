// Immediates: constant scalar expressions, and the numbers that an element type holds.
#ifndef FUSION_COMPILER_TE_SCALAR_IMMEDIATE_H_
#define FUSION_COMPILER_TE_SCALAR_IMMEDIATE_H_

#include <cstdint>

#include "compiler/te/scalar/scalar_node.h"
#include "runtime/base/dtype.h"

namespace fusion::te {

// Wraps to two's complement of the type's width, sign- or zero-extended. bool: != 0. u64 keeps its bits.
int64_t WrapInt(DType dtype, int64_t value);
// Rounds towards zero and saturates at 64 bits, then wraps; NaN gives 0. bool: != 0.
int64_t DoubleToInt(DType dtype, double value);
// Returns whether the float type holds `value` exactly (NaN: yes).
bool IsExactIn(DType dtype, double value);

Scalar Imm(DType dtype, double value);  // integers and bool are rounded towards zero
Scalar ImmInt(DType dtype, int64_t value);
bool IsImm(const Scalar& s, double value);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_IMMEDIATE_H_
