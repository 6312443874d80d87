// A constant that replaces another at compile time: some dimensions are multiplied by a matrix each (the taps of a
// filter under minimal filtering).
#ifndef FUSION_COMPILER_MOVEMENT_CONSTANT_TRANSFORM_H_
#define FUSION_COMPILER_MOVEMENT_CONSTANT_TRANSFORM_H_

#include <utility>
#include <vector>

#include "runtime/base/tensor.h"

namespace fusion::movement {

struct ConstantTransform {
  // Dimension of the original, and the f32 matrix [new extent, old extent] that multiplies it.
  std::vector<std::pair<int, Tensor>> by_dimension;
};

// Returns the transformed `source`, which is f32. Sums are in double.
Tensor Transformed(const ConstantTransform& transform, const Tensor& source);

// The same, a range at a time, so that threads can share one constant. The outermost dimensions, which no matrix
// multiplies, number the parts ("blocks" in the names); the result of a part depends on that part alone.
struct TransformBlocks {
  Shape shape;                                       // of the whole result
  int64_t blocks = 1;                                // number of parts, in the source and in the result
  int64_t source_elements = 1, result_elements = 1;  // of one part
};
TransformBlocks BlocksOf(const ConstantTransform& transform, const Shape& source);
// Transforms parts [begin, end) of `source` into their places in the whole result `out`.
void TransformRange(const ConstantTransform& transform, const Tensor& source, int64_t begin, int64_t end, float* out);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_CONSTANT_TRANSFORM_H_
