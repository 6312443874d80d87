#include "compiler/movement/constant_transform.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace fusion::movement {
namespace {

// The most parts that are transformed together, element by element, so that the innermost loop runs in vectors.
constexpr int64_t kMostBeside = 64;
// Elements in use at a time: so many stay in the first caches.
constexpr int64_t kElementsAtWork = 16 << 10;

int64_t Product(const Shape& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t d = begin; d < end; ++d) product *= shape[d];
  return product;
}

// The outermost dimension that a matrix multiplies; the rank if there is none.
size_t FirstTransformed(const ConstantTransform& transform, const Shape& shape) {
  size_t first = shape.size();
  for (const auto& [dimension, matrix] : transform.by_dimension) first = std::min<size_t>(first, dimension);
  return first;
}

}  // namespace

TransformBlocks BlocksOf(const ConstantTransform& transform, const Shape& source) {
  const size_t first = FirstTransformed(transform, source);
  TransformBlocks result;
  result.shape = source;
  for (const auto& [dimension, matrix] : transform.by_dimension) {
    FUSION_CHECK(result.shape[dimension] == matrix.shape()[1], "a constant's transform does not fit its shape");
    result.shape[dimension] = matrix.shape()[0];
  }
  result.blocks = Product(source, 0, first);
  result.source_elements = Product(source, first, source.size());
  result.result_elements = Product(result.shape, first, source.size());
  return result;
}

void TransformRange(const ConstantTransform& transform, const Tensor& source, int64_t begin, int64_t end, float* out) {
  const TransformBlocks sizes = BlocksOf(transform, source.shape());
  const size_t first = FirstTransformed(transform, source.shape());
  const Shape block(source.shape().begin() + static_cast<std::ptrdiff_t>(first), source.shape().end());
  int64_t largest = std::max(sizes.source_elements, sizes.result_elements);
  Shape shape = block;
  for (const auto& [dimension, matrix] : transform.by_dimension) {
    shape[dimension - first] = matrix.shape()[0];
    largest = std::max(largest, NumElements(shape));
  }
  const int64_t beside = std::clamp<int64_t>(kElementsAtWork / std::max<int64_t>(largest, 1), 1, kMostBeside);
  // Indexed [element of a part][part].
  std::vector<float> now(largest * beside), next(largest * beside);
  std::vector<double> sums(beside);
  for (int64_t b = begin; b < end; b += beside) {
    const int64_t count = std::min(beside, end - b);
    const float* in = static_cast<const float*>(source.data()) + b * sizes.source_elements;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t e = 0; e < sizes.source_elements; ++e) now[e * beside + i] = in[i * sizes.source_elements + e];
    }
    shape = block;
    for (const auto& [dimension, matrix] : transform.by_dimension) {
      const size_t d = dimension - first;
      const int64_t to = matrix.shape()[0], from = matrix.shape()[1];
      const int64_t outer = Product(shape, 0, d), inner = Product(shape, d + 1, shape.size());
      const auto* m = static_cast<const float*>(matrix.data());
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t t = 0; t < to; ++t) {
          for (int64_t e = 0; e < inner; ++e) {
            std::fill(sums.begin(), sums.end(), 0.0);
            double* sum = sums.data();
            for (int64_t f = 0; f < from; ++f) {
              const double factor = m[t * from + f];
              const float* term = now.data() + ((o * from + f) * inner + e) * beside;
              for (int64_t i = 0; i < beside; ++i) sum[i] += factor * static_cast<double>(term[i]);
            }
            float* place = next.data() + ((o * to + t) * inner + e) * beside;
            for (int64_t i = 0; i < beside; ++i) place[i] = static_cast<float>(sum[i]);
          }
        }
      }
      shape[d] = to;
      now.swap(next);
    }
    float* result = out + b * sizes.result_elements;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t e = 0; e < sizes.result_elements; ++e) result[i * sizes.result_elements + e] = now[e * beside + i];
    }
  }
}

Tensor Transformed(const ConstantTransform& transform, const Tensor& source) {
  if (transform.by_dimension.empty()) return source;
  const TransformBlocks sizes = BlocksOf(transform, source.shape());
  Tensor result(DType::kF32, sizes.shape);
  TransformRange(transform, source, 0, sizes.blocks, result.mutable_as<float>());
  return result;
}

}  // namespace fusion::movement
