// LocalScale: how large the numbers around an element are. Its rounding error is measured relative to that.
#ifndef FUSION_RUNTIME_VERDICT_LOCAL_SCALE_H_
#define FUSION_RUNTIME_VERDICT_LOCAL_SCALE_H_

#include <cstdint>

#include "runtime/base/tensor.h"

namespace fusion {

// A row is the content of the last axes, as many of them as hold at least this many elements: [1, 1000] has one row of
// 1000, [8, 3, 224, 224] rows of 224 pixels. Fewer elements have no typical size: the four coordinates of a box may all
// be small differences of large numbers, so [100, 4] is one row.
inline constexpr int64_t kLeastRowElements = 16;
int64_t RowElements(const Shape& shape);

// The differences that a comparison accepts beyond rounding in an output's own type.
struct Slack {
  DType stored = DType::kF32;  // type in which floats were stored on the way, if coarser than their own type
  double absolute = 0;         // smaller differences are ignored: another runtime's approximations near zero
};

// Serves one reference tensor of floats, which must outlive it. Not thread-safe.
class LocalScale {
 public:
  LocalScale(const Tensor& reference, const Slack& slack);

  // Returns the distance of `actual` from the reference at `element`, relative to the larger of the reference there and
  // its row's scale. Returns 0 for a difference below the smallest normal number, which a device may count as zero, or
  // within Slack::absolute. Both numbers must be finite.
  double Error(int64_t element, double actual);

  // Returns the row's scale: the larger of two figures over its finite elements that are not zero.
  // - Their median magnitude. A mean would not do, because a few large elements say nothing about the others.
  // - The root mean square of the elements of magnitude at most 1. Most of a row may be the tail of a sigmoid, a
  //   softmax or an interpolation, which is as exact as the 1 that it was computed beside.
  //
  // Elements that stand more than 4096 times above all smaller elements (zeros and a 1 included) are left out, however
  // many there are: such numbers, like the -3e38 of a mask, are no operands of the others. If nothing is left, the
  // scale is that of the whole tensor; 0 if nothing is left there either.
  double Of(int64_t element);

 private:
  const Tensor& reference_;
  const double negligible_;  // a difference up to this counts as none
  const double least_;       // the least scale
  const int64_t row_elements_;
  int64_t row_ = -1;  // the row that `scale_` belongs to
  double scale_ = 0;
  double whole_ = -1;  // the whole tensor's scale, once needed
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_VERDICT_LOCAL_SCALE_H_
