// Order statistics of samples.
#ifndef FUSION_RUNTIME_BASE_QUANTILE_H_
#define FUSION_RUNTIME_BASE_QUANTILE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace fusion {

// Returns the sample whose rank is nearest to the fraction q of the way from the smallest sample (q = 0) to the largest
// (q = 1). `values` must not be empty.
inline double Quantile(std::vector<double> values, double q) {
  const auto rank = static_cast<std::ptrdiff_t>(std::lround(q * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<size_t>(rank)];
}

struct Interval {
  double low = 0, high = 0;
};

// Returns an interval that holds the median of what the samples are drawn from with a confidence of 95%, whatever its
// distribution: each sample lies below the median with probability one half, so the interval lies between two samples
// whose ranks the binomial distribution gives. For fewer than six samples it is their range, which is not as certain.
// `values` must not be empty.
inline Interval MedianInterval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double last = static_cast<double>(values.size()) - 1;
  const double apart = 0.98 * std::sqrt(static_cast<double>(values.size()));  // half of 1.96 standard deviations
  const double below = std::max(0.0, std::floor(last / 2 - apart));
  return {values[static_cast<size_t>(below)], values[static_cast<size_t>(last - below)]};
}

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_QUANTILE_H_
