#include "compiler/movement/constant_transform.h"

#include "runtime/base/check.h"

namespace fusion::movement {

Tensor Transformed(const ConstantTransform& transform, const Tensor& source) {
  Tensor result = source;
  for (const auto& [dimension, matrix] : transform.by_dimension) {
    Shape shape = result.shape();
    const int64_t to = matrix.shape()[0], from = matrix.shape()[1];
    FUSION_CHECK(shape[dimension] == from, "a constant's transform does not fit its shape");
    shape[dimension] = to;
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      (d < dimension ? outer : inner) *= d == dimension ? 1 : shape[d];
    }
    Tensor next(DType::kF32, shape);
    const float* in = static_cast<const float*>(result.data());
    const float* m = static_cast<const float*>(matrix.data());
    auto* out = static_cast<float*>(next.mutable_data());
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t t = 0; t < to; ++t) {
        float* row = out + (o * to + t) * inner;
        for (int64_t i = 0; i < inner; ++i) {
          double sum = 0;
          for (int64_t f = 0; f < from; ++f) {
            sum += static_cast<double>(m[t * from + f]) * in[(o * from + f) * inner + i];
          }
          row[i] = static_cast<float>(sum);
        }
      }
    }
    result = std::move(next);
  }
  return result;
}

}  // namespace fusion::movement
