#include "runtime/verdict/local_scale.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/verdict/ulps.h"

namespace fusion {
namespace {

constexpr double kWidestGap = 4096;  // a full-width box beside coordinates of 0 must not count as a mask

double ScaleOf(const Tensor& tensor, int64_t begin, int64_t end) {
  std::vector<double> sorted;
  bool zeros = false;
  for (int64_t i = begin; i < end; ++i) {
    const double magnitude = std::abs(tensor.GetDouble(i));
    zeros = zeros || magnitude == 0;
    if (magnitude > 0 && std::isfinite(magnitude)) sorted.push_back(magnitude);
  }
  std::sort(sorted.begin(), sorted.end());
  size_t kept = 0, small = 0;
  double below = zeros || sorted.empty() ? 0 : sorted[0], squares = 0;
  for (; kept < sorted.size() && sorted[kept] <= kWidestGap * std::max(1.0, below); ++kept) {
    below = sorted[kept];
    if (below > 1) continue;
    squares += below * below;
    ++small;
  }
  if (kept == 0) return 0;
  return std::max(sorted[kept / 2], small > 0 ? std::sqrt(squares / static_cast<double>(small)) : 0);
}

}  // namespace

int64_t RowElements(const Shape& shape) {
  int64_t elements = 1;
  for (size_t axis = shape.size(); axis-- > 0 && elements < kLeastRowElements;) elements *= shape[axis];
  return std::max<int64_t>(elements, 1);
}

LocalScale::LocalScale(const Tensor& reference, const Slack& slack)
    : reference_(reference),
      negligible_(std::max(SmallestNormal(reference.dtype()), slack.absolute)),
      least_(std::max(SmallestNormal(reference.dtype()), SmallestNormal(slack.stored))),
      row_elements_(RowElements(reference.shape())) {}

double LocalScale::Error(int64_t element, double actual) {
  const double reference = reference_.GetDouble(element), difference = std::abs(actual - reference);
  if (difference <= negligible_) return 0;
  return difference / std::max({std::abs(reference), Of(element), least_});
}

double LocalScale::Of(int64_t element) {
  if (const int64_t row = element / row_elements_; row != row_) {
    row_ = row;
    scale_ = ScaleOf(reference_, row * row_elements_, (row + 1) * row_elements_);
  }
  if (scale_ > 0) return scale_;
  if (whole_ < 0) whole_ = ScaleOf(reference_, 0, reference_.num_elements());
  return whole_;
}

}  // namespace fusion
