// LocalScale: how large the numbers around an element are, which is what its rounding error is held against.
#ifndef FUSION_CLIENT_LOCAL_LOCAL_SCALE_H_
#define FUSION_CLIENT_LOCAL_LOCAL_SCALE_H_

#include <cstdint>
#include <vector>

#include "runtime/base/tensor.h"

namespace fusion {

// A row is what the trailing axes hold, as many of them as give this many elements: [1, 1000] has one row of 1000,
// [8, 3, 224, 224] rows of 224 pixels. Fewer elements have no typical size: the four coordinates of a box may all be
// small differences of large numbers, so that [100, 4] is one row.
inline constexpr int64_t kLeastRowElements = 16;
int64_t RowElements(const Shape& shape);

// Of one reference tensor of floats, which must outlive it. One thread at a time.
class LocalScale {
 public:
  // `epsilon`: of the coarsest type that the values were kept in.
  LocalScale(const Tensor& reference, double epsilon);

  int64_t row_elements() const { return row_elements_; }

  // The median magnitude of the row's finite elements that are neither zero nor more than 16 / epsilon times
  // `magnitude`; where the row has none, the whole tensor's; 0 where that has none either. The median, because a few huge elements say nothing about the others; the
  // bound, because many do not either: a sum of terms that cancel leaves a residue of their size times epsilon, so
  // that what stands further above than that (the -3e38 of a mask) cannot be where an element's error comes from.
  // `magnitude`: that of the larger of the two values that are compared.
  double At(int64_t element, double magnitude);

 private:
  const Tensor& reference_;
  const double reach_;
  const int64_t row_elements_;
  int64_t row_ = -1;            // whose magnitudes `sorted_` holds
  std::vector<double> sorted_;  // ascending
  std::vector<double> all_;     // the whole tensor's, once needed
};

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_LOCAL_SCALE_H_
