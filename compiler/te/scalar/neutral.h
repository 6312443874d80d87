// Calls that are equal to one of their operands: x + 0, x * 1, a selection between equals. Only what holds bit for bit,
// for every value and in every element type: for floats, what keeps the sign of zero.
#ifndef FUSION_COMPILER_TE_SCALAR_NEUTRAL_H_
#define FUSION_COMPILER_TE_SCALAR_NEUTRAL_H_

#include <vector>

#include "compiler/te/scalar/scalar_node.h"

namespace fusion::te::neutral {

// Each returns the operand, or null.
Scalar OfSum(const std::vector<Scalar>& args);
Scalar OfDifference(const std::vector<Scalar>& args);
Scalar OfProduct(const std::vector<Scalar>& args);
Scalar OfQuotient(const std::vector<Scalar>& args);
Scalar OfAnd(const std::vector<Scalar>& args);
Scalar OfOr(const std::vector<Scalar>& args);
Scalar OfNot(const std::vector<Scalar>& args);
Scalar OfSelect(const std::vector<Scalar>& args);

}  // namespace fusion::te::neutral

#endif  // FUSION_COMPILER_TE_SCALAR_NEUTRAL_H_
