// What the constructors of scalar expressions fold: only what holds bit for bit, for every value and in every element
// type.
#ifndef FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_
#define FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_

#include <vector>

#include "compiler/te/scalar/scalar.h"

namespace fusion::te {

// Wraps to two's complement of the type's width, sign- or zero-extended. bool: != 0. u64 keeps its bits.
int64_t WrapInt(DType dtype, int64_t value);
// Rounds towards zero and saturates at 64 bits, then wraps; NaN gives 0. bool: != 0.
int64_t DoubleToInt(DType dtype, double value);
// Returns whether the float type holds `value` exactly (NaN: yes).
bool IsExactIn(DType dtype, double value);

// Returns a simpler equivalent of the call, or null. Arithmetic of float immediates folds where its operands and its
// double result are exact in the type, so that computing in double and in the type agree. Functions of a mathematics
// library never fold.
Scalar FoldCall(Op op, DType dtype, const std::vector<Scalar>& args);
Scalar FoldCast(DType dtype, const ScalarNode& x);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_
