#include "client/local/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "runtime/base/epsilon.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr int kRuns = 4;
constexpr double kRoundings = 4;  // that add up to an output's error, as multiples of one

}  // namespace

std::vector<Tensor> Nudged(const std::vector<Tensor>& inputs, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> nudged = inputs;
  for (Tensor& tensor : nudged) {
    if (!IsFloat(tensor.dtype())) continue;
    const double unit = Epsilon(tensor.dtype());
    Tensor moved(tensor.dtype(), tensor.shape());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const double steps = static_cast<double>(random() % 3) - 1;
      moved.SetDouble(i, tensor.GetDouble(i) * (1 + steps * unit));
    }
    tensor = std::move(moved);
  }
  return nudged;
}

absl::StatusOr<std::vector<double>> Sensitivity(const ModelRun& run, const std::vector<Tensor>& inputs,
                                                const std::vector<Tensor>& outputs) {
  std::vector<double> moved(outputs.size(), 0);
  for (int k = 1; k <= kRuns; ++k) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> others, run(Nudged(inputs, static_cast<uint64_t>(k))));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto difference = CompareTensors(others[i], outputs[i]);
      const bool comparable = difference.ok() && difference->special_mismatches == 0;  // extents may depend on data
      moved[i] = std::max(moved[i], comparable ? difference->max_rel_err : std::numeric_limits<double>::infinity());
    }
  }
  return moved;
}

void Allow(double sensitivity, Comparison* comparison) {
  comparison->tolerance =
      std::clamp(kRoundings * sensitivity, comparison->tolerance, std::max(comparison->tolerance, kMostTolerance));
  comparison->ok =
      comparison->special_mismatches == 0 && !comparison->only_nan && comparison->max_rel_err <= comparison->tolerance;
}

}  // namespace fusion
