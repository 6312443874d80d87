// What the constructors of scalar expressions fold: only what holds bit for bit, for every value and in every element
// type.
#ifndef FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_
#define FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_

#include <vector>

#include "compiler/te/scalar/scalar_node.h"

namespace fusion::te {

// Returns a simpler equivalent of the call, or null. Arithmetic of float immediates folds where its operands and its
// double result are exact in the type, so that computing in double and in the type agree. Functions of a mathematics
// library never fold.
Scalar FoldCall(Op op, DType dtype, const std::vector<Scalar>& args);
Scalar FoldCast(DType dtype, const ScalarNode& x);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_SCALAR_FOLD_H_
