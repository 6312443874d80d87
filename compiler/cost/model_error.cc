#include "compiler/cost/model_error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/quantile.h"

namespace fusion {
namespace {

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (size_t i = first; i < last; ++i) ranks[order[i]] = static_cast<double>(first + last - 1) / 2;
    first = last;
  }
  return ranks;
}

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

ModelError SummarizeModelError(const std::vector<std::pair<double, double>>& model_and_measured) {
  ModelError result;
  result.kernels = static_cast<int64_t>(model_and_measured.size());
  if (model_and_measured.empty()) return result;
  std::vector<double> model, measured, ratios, errors, factors;
  for (const auto& [expected, found] : model_and_measured) {
    model.push_back(expected);
    measured.push_back(found);
    ratios.push_back(found / expected);
  }
  result.median_ratio = Quantile(ratios, 0.5);
  for (const auto& [expected, found] : model_and_measured) {
    const double calibrated = expected * result.median_ratio / found;
    errors.push_back(std::fabs(calibrated - 1));
    factors.push_back(std::max(calibrated, 1 / calibrated));
  }
  result.median_error = Quantile(errors, 0.5);
  result.factor = Quantile(factors, 0.9);
  result.rank_correlation = Correlation(Ranks(model), Ranks(measured));
  return result;
}

double TrustedFactor(const ModelError& error) {
  constexpr int64_t kLeastKernels = 30;
  constexpr double kStep = 0.25;
  if (error.kernels < kLeastKernels) return std::numeric_limits<double>::infinity();
  return std::ceil(error.factor / kStep) * kStep;
}

}  // namespace fusion
