// LocalScale: how large the numbers around an element are, which is what its rounding error is held against.
#ifndef FUSION_CLIENT_LOCAL_LOCAL_SCALE_H_
#define FUSION_CLIENT_LOCAL_LOCAL_SCALE_H_

#include <cstdint>

#include "runtime/base/tensor.h"

namespace fusion {

// A row is what the trailing axes hold, as many of them as give this many elements: [1, 1000] has one row of 1000,
// [8, 3, 224, 224] rows of 224 pixels. Fewer elements have no typical size: the four coordinates of a box may all be
// small differences of large numbers, so that [100, 4] is one row.
inline constexpr int64_t kLeastRowElements = 16;
int64_t RowElements(const Shape& shape);

// What a comparison forgives beyond rounding in an output's own type.
struct Slack {
  DType stored = DType::kF32;  // as what floats were kept on the way, where that is coarser than their own type
  double absolute = 0;         // differences up to this are none, for another runtime's approximations near zero
};

// Serves one reference tensor of floats, which must outlive it. One thread at a time.
class LocalScale {
 public:
  LocalScale(const Tensor& reference, const Slack& slack);

  // How far `actual` is from the reference at `element`, relative to the larger of the reference there and its row's
  // scale. 0 below the smallest normal number, which a device may count as zero, and within Slack::absolute. Both must be finite.
  double Error(int64_t element, double actual);

  // The larger of two figures over the row's finite elements that are not zero: their median magnitude, and the root
  // mean square of those of magnitude at most 1. The median, because a few large elements say nothing about the others.
  // The second, because most of a row may be the tail of a sigmoid, a softmax or an interpolation, which is as exact as
  // the 1 that it was computed beside. Left out is what stands more than 4096 times above all smaller elements, zeros
  // and a 1 included, as the -3e38 of a mask does, however many there are: such numbers are no operands of the others.
  // Where nothing is left, the same of the whole tensor; 0 where nothing is left there either.
  double Of(int64_t element);

 private:
  const Tensor& reference_;
  const double negligible_;  // a difference up to this is none
  const double least_;       // what no scale is below
  const int64_t row_elements_;
  int64_t row_ = -1;  // whose scale `scale_` is
  double scale_ = 0;
  double whole_ = -1;  // the whole tensor's, once needed
};

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_LOCAL_SCALE_H_
