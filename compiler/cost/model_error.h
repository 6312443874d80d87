// How far is the cost model from what was measured?
#ifndef FUSION_COMPILER_COST_MODEL_ERROR_H_
#define FUSION_COMPILER_COST_MODEL_ERROR_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace fusion {

struct ModelError {
  int64_t kernels = 0;
  double rank_correlation = 0;  // Spearman's, ties at their mean rank; 0 for fewer than two kernels
  double median_ratio = 0;      // median of measured / model; 1 means that the model is calibrated
  double median_error = 0;      // median of |model · median_ratio / measured - 1|: the error left after calibration
  double factor = 0;  // at least 1: nine of ten calibrated estimates are within this factor of the measurement
};

// Two kernels whose estimates differ by more than this factor are taken to be in that order. The factor moves in coarse
// steps, so that one more measurement seldom changes a plan. It is infinity while too few kernels were measured.
double TrustedFactor(const ModelError& error);

// Takes pairs of estimate and measurement, all in one unit and above 0.
ModelError SummarizeModelError(const std::vector<std::pair<double, double>>& model_and_measured);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_MODEL_ERROR_H_
