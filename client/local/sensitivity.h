// How well a model's outputs are determined: how far they move when its inputs move by what rounding would move them.
#ifndef FUSION_CLIENT_LOCAL_SENSITIVITY_H_
#define FUSION_CLIENT_LOCAL_SENSITIVITY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/local/compare.h"
#include "runtime/base/tensor.h"

namespace fusion {

// The inputs with every floating-point element moved, at random, one unit in the last place up, down, or not at all.
std::vector<Tensor> Nudged(const std::vector<Tensor>& inputs, uint64_t seed);

using ModelRun = std::function<absl::StatusOr<std::vector<Tensor>>(const std::vector<Tensor>& inputs)>;

// For each output, in the metric of Comparison::max_rel_err, the most that it moves in a few runs with nudged inputs.
// `outputs`: those of run(inputs).
absl::StatusOr<std::vector<double>> Sensitivity(const ModelRun& run, const std::vector<Tensor>& inputs,
                                                const std::vector<Tensor>& outputs);

// What two correct programs may differ by: each layer rounds, and each rounding moves the outputs about as far as a
// nudged input does. At most kMostTolerance: beyond, rounding decides the outputs and nothing can be verified.
inline constexpr double kMostTolerance = 0.03;
void Allow(double sensitivity, Comparison* comparison);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_SENSITIVITY_H_
