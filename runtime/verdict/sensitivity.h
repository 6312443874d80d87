// Measures how well a model determines its outputs: how far they move when its inputs move as far as rounding moves
// them.
#ifndef FUSION_RUNTIME_VERDICT_SENSITIVITY_H_
#define FUSION_RUNTIME_VERDICT_SENSITIVITY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"
#include "runtime/verdict/compare.h"

namespace fusion {

// Returns the inputs with every floating-point element moved at random: up or down by about one unit in the last place,
// or not at all.
std::vector<Tensor> Nudged(const std::vector<Tensor>& inputs, uint64_t seed);

// How an output moved in a few runs with nudged inputs.
struct Movement {
  // For each row (Comparison::row_errors) the largest movement, in the metric of Comparison::max_rel_err; infinite
  // where a number became NaN or infinite. Rows that tie are matched first (tied_rows.h).
  std::vector<double> rows;
  std::string extents;  // other extents that the output had in a run: "[3, 4]"; empty if none

  double most() const;
};

using ModelRun = std::function<absl::StatusOr<std::vector<Tensor>>(const std::vector<Tensor>& inputs)>;

// How many runs with nudged inputs there are. The most of few runs is too little for some of many rows: where only
// little is wrong after the first ones, there are more.
inline constexpr int kFewRuns = 4, kManyRuns = 16;

// Adds runs to what earlier runs have shown: those with the numbers begin to end - 1, counted from 0. `movements` has
// one for each output, or is empty before the first run. `outputs` are those of run(inputs); `run` must agree with them
// in number and types.
absl::Status AddRuns(const ModelRun& run, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                     int begin, int end, std::vector<Movement>* movements);

// Two correct programs may differ: each layer rounds, and each rounding moves the outputs about as far as a nudged
// input does. This is the most that is allowed. Beyond it, rounding decides the outputs and nothing can be verified.
inline constexpr double kMostTolerance = 0.03;

// Judges wrong outputs again, row by row. A row beyond the fixed tolerance is
// - right if it differs by at most 4 times its own movement, and by at most kMostTolerance;
// - not compared if it differs by more than kMostTolerance, but by at most 4 times its own movement;
// - wrong if it differs by more than 4 times its own movement.
// An output whose extents move is not compared either. `why` names all cases but the first.
void Allow(const Movement& movement, Comparison* comparison);

}  // namespace fusion

#endif  // FUSION_RUNTIME_VERDICT_SENSITIVITY_H_
