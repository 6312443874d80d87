// How well a model's outputs are determined: how far they move when its inputs move by what rounding would move them.
#ifndef FUSION_CLIENT_LOCAL_SENSITIVITY_H_
#define FUSION_CLIENT_LOCAL_SENSITIVITY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/local/compare.h"
#include "runtime/base/tensor.h"

namespace fusion {

// The inputs with every floating-point element moved, at random, one unit in the last place up, down, or not at all.
std::vector<Tensor> Nudged(const std::vector<Tensor>& inputs, uint64_t seed);

// What an output did in a few runs with nudged inputs.
struct Movement {
  // For each row (Comparison::row_errors) the most that it moved, in the metric of Comparison::max_rel_err; infinite
  // where a number became NaN or infinite. Rows that tie are matched before (tied_rows.h).
  std::vector<double> rows;
  std::string extents;  // empty, or other extents that it had: "[3, 4]"

  double most() const;
};

using ModelRun = std::function<absl::StatusOr<std::vector<Tensor>>(const std::vector<Tensor>& inputs)>;

// One Movement an output. `outputs`: those of run(inputs), with which `run` must agree in number and types.
absl::StatusOr<std::vector<Movement>> Sensitivity(const ModelRun& run, const std::vector<Tensor>& inputs,
                                                  const std::vector<Tensor>& outputs);

// What two correct programs may differ by: each layer rounds, and each rounding moves the outputs about as far as a
// nudged input does. At most kMostTolerance: beyond, rounding decides the outputs and nothing can be verified.
inline constexpr double kMostTolerance = 0.03;

// Judges again what was wrong, row by row. A row beyond the tolerance is right if it differs by at most 4 times what it
// moves itself, and by kMostTolerance at most. A row that differs by more and moves as far is not compared, and so is
// an output whose extents move; both are named in `why`. A row that differs by more than it moves stays wrong.
void Allow(const Movement& movement, Comparison* comparison);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_SENSITIVITY_H_
