// Ranges of a row in which a reduction's body has no condition on the row: the scores of several kinds of keys that
// stand side by side (a Concat in front of a Softmax).
#ifndef FUSION_COMPILER_MOVEMENT_ROW_RANGES_H_
#define FUSION_COMPILER_MOVEMENT_ROW_RANGES_H_

#include <vector>

#include "compiler/te/scalar/scalar.h"

namespace fusion::movement {

struct RowRange {
  te::Axis axis;    // the row's, with the range's extent: it counts from the range's begin
  te::Scalar body;  // over that axis
};

// Cuts the axis where conditions `axis < at` of the body change their truth, in order. One range, the body as it is,
// where there are none, or very many.
std::vector<RowRange> RowRangesOf(const te::Scalar& body, const te::Axis& axis);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_ROW_RANGES_H_
