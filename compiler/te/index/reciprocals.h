// Turns a * (1 / b) into a / b where nothing else reads the reciprocal, which saves one operation and one rounding.
// x · sigmoid(x) becomes x / (1 + exp(-x)).
#ifndef FUSION_COMPILER_TE_INDEX_RECIPROCALS_H_
#define FUSION_COMPILER_TE_INDEX_RECIPROCALS_H_

#include <vector>

#include "compiler/te/scalar/scalar.h"

namespace fusion::te {

// `values` are computed at the same point, and nodes that they share stay shared.
std::vector<Scalar> MergeReciprocals(const std::vector<Scalar>& values);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_INDEX_RECIPROCALS_H_
