// Data of f32 for chains of sums of products: hostile, as DrawTensor makes it, but without a finite element that makes
// such a chain overflow. Whether a sum of those is infinite or no number depends on how products are contracted.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_MILD_VALUES_H_
#define FUSION_TESTS_FUZZ_GRAPHS_MILD_VALUES_H_

#include <string>

#include "tests/fuzz/graphs/drawing.h"

namespace fusion::fuzz {

bool IsMild(const Tensor& tensor);

// The constant's filling where its text keeps no more, which is mild once it is materialised; else its elements.
Tensor MildConstant(const Shape& shape, Drawing* draw);

// The name of an input whose data, which the name determines, are mild.
std::string MildName(const Shape& shape, Drawing* draw);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_MILD_VALUES_H_
