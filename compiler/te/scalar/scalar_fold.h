// Facts about the value of an operation: the identities that constructors of scalar expressions fold, which hold bit
// for bit, for every value and in every element type, and the exact values of operations on numbers.
#ifndef FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_
#define FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_

#include <optional>
#include <vector>

#include "compiler/te/scalar/scalar_node.h"

namespace fusion::te {

// Returns a simpler equivalent of the call, or null. Arithmetic of float immediates folds where its operands and its
// double result are exact in the type, so that computing in double and in the type agree. Functions of a mathematics
// library never fold.
Scalar FoldCall(Op op, DType dtype, const std::vector<Scalar>& args);
Scalar FoldCast(DType dtype, const ScalarNode& x);

// Returns what an operation gives for operands of type `dtype`, of which a unary one ignores `b`; a truth is 0 or 1.
// Returns nullopt where the operation is not defined on the type, where the result is NaN, and where the type does not
// hold an operand or the result exactly. Functions of a mathematics library are trusted with the results 0, 1 and
// infinity only, because other values may differ between libraries. 2^63 stands for the greatest i64, as for
// DoubleToInt, and 2^64 for the greatest u64.
std::optional<double> ExactValue(Op op, DType dtype, double a, double b = 0);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_
