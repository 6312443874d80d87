// How far is the cost model from what was measured?
#ifndef FUSION_COMPILER_COST_MODEL_ERROR_H_
#define FUSION_COMPILER_COST_MODEL_ERROR_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace fusion {

struct ModelError {
  int64_t kernels = 0;
  double rank_correlation = 0;  // Spearman's, ties at their mean rank; 0 for less than two kernels
  double median_ratio = 0;      // measured / model: 1 would be calibrated
  double median_error = 0;      // of |model · median_ratio / measured - 1|: what is left once it is calibrated
  double factor = 0;            // at least 1: nine of ten calibrated estimates are no further off, either way
};

// Kernels whose estimates are more than this factor apart are taken to be in that order. In coarse steps, so that one
// more measurement seldom changes a plan; infinity where so few kernels were measured that nothing is known.
double TrustedFactor(const ModelError& error);

// Pairs of estimate and measurement, in one unit, all above 0.
ModelError SummarizeModelError(const std::vector<std::pair<double, double>>& model_and_measured);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_MODEL_ERROR_H_
