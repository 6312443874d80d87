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

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_QUANTILE_H_
