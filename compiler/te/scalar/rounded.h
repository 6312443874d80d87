// Rounded: a cast of a float to the type that it has. Cast makes none, since most values need none.
#ifndef FUSION_COMPILER_TE_SCALAR_ROUNDED_H_
#define FUSION_COMPILER_TE_SCALAR_ROUNDED_H_

#include <vector>

#include "compiler/te/scalar/scalar.h"

namespace fusion::te {

// Returns `x` as its type holds it: the interpreter rounds here, and no kernel's compiler contracts the operation that
// computes `x` with one that reads it. A rounding stays as it is.
Scalar Rounded(Scalar x);
// Returns the same cast of another operand. Whoever rebuilds expressions needs it, because Cast would drop a rounding.
Scalar CastOf(const ScalarNode& cast, Scalar x);

// Returns `s` over these operands, or `s` itself if they are its own. A rounding stays one.
Scalar WithOperands(const Scalar& s, std::vector<Scalar> args);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_ROUNDED_H_
