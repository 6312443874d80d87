// A constant that takes another's place at compile time: each of some dimensions is multiplied by a matrix (the taps of
// a filter under minimal filtering).
#ifndef FUSION_COMPILER_MOVEMENT_CONSTANT_TRANSFORM_H_
#define FUSION_COMPILER_MOVEMENT_CONSTANT_TRANSFORM_H_

#include <utility>
#include <vector>

#include "runtime/base/tensor.h"

namespace fusion::movement {

struct ConstantTransform {
  // Dimension of the original, and the f32 matrix [new extent, old extent].
  std::vector<std::pair<int, Tensor>> by_dimension;
};

// `source` is f32. Sums are in double.
Tensor Transformed(const ConstantTransform& transform, const Tensor& source);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_CONSTANT_TRANSFORM_H_
