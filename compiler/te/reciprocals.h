// a * (1 / b) as a / b, where nothing else reads the reciprocal: one operation and one rounding less. x · sigmoid(x) is
// x / (1 + exp(-x)) then.
#ifndef FUSION_COMPILER_TE_RECIPROCALS_H_
#define FUSION_COMPILER_TE_RECIPROCALS_H_

#include <vector>

#include "compiler/te/scalar.h"

namespace fusion::te {

// `values` are computed at the same point: what two of them share is shared.
std::vector<Scalar> MergeReciprocals(const std::vector<Scalar>& values);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_RECIPROCALS_H_
