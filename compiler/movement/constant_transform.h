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

// The same a range at a time, so that threads share one: the outermost dimensions, which no matrix multiplies, number
// the blocks, and a block's result depends on that block alone.
struct TransformBlocks {
  Shape shape;                                       // of the whole result
  int64_t blocks = 1;                                // of the source and of the result
  int64_t source_elements = 1, result_elements = 1;  // of a block
};
TransformBlocks BlocksOf(const ConstantTransform& transform, const Shape& source);
// Blocks [begin, end) of `source` into their places in the whole result `out`.
void TransformRange(const ConstantTransform& transform, const Tensor& source, int64_t begin, int64_t end, float* out);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_CONSTANT_TRANSFORM_H_
