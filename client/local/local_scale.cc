#include "client/local/local_scale.h"

#include <algorithm>
#include <cmath>

namespace fusion {
namespace {

std::vector<double> SortedMagnitudes(const Tensor& tensor, int64_t begin, int64_t end) {
  std::vector<double> sorted;
  for (int64_t i = begin; i < end; ++i) {
    const double value = std::abs(tensor.GetDouble(i));
    if (value > 0 && std::isfinite(value)) sorted.push_back(value);
  }
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double MedianUpTo(const std::vector<double>& sorted, double bound) {
  const auto count = std::upper_bound(sorted.begin(), sorted.end(), bound) - sorted.begin();
  return count == 0 ? 0 : sorted[static_cast<size_t>(count / 2)];
}

}  // namespace

int64_t RowElements(const Shape& shape) {
  int64_t elements = 1;
  for (size_t axis = shape.size(); axis-- > 0 && elements < kLeastRowElements;) elements *= shape[axis];
  return std::max<int64_t>(elements, 1);
}

LocalScale::LocalScale(const Tensor& reference, double epsilon)
    : reference_(reference), reach_(16 / epsilon), row_elements_(RowElements(reference.shape())) {}

double LocalScale::At(int64_t element, double magnitude) {
  const int64_t row = element / row_elements_;
  if (row != row_) {
    row_ = row;
    sorted_ = SortedMagnitudes(reference_, row * row_elements_, (row + 1) * row_elements_);
  }
  const double bound = magnitude * reach_;
  if (const double median = MedianUpTo(sorted_, bound); median > 0) return median;
  if (all_.empty()) all_ = SortedMagnitudes(reference_, 0, reference_.num_elements());
  return MedianUpTo(all_, bound);
}

}  // namespace fusion
