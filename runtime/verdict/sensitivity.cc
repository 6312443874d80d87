#include "runtime/verdict/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/epsilon.h"
#include "runtime/base/status_macros.h"
#include "runtime/verdict/local_scale.h"
#include "runtime/verdict/tied_rows.h"

namespace fusion {
namespace {

constexpr double kRoundings = 4;  // roundings that add up to an output's error, as multiples of one

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

double Movement::most() const { return rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()); }

absl::Status AddRuns(const ModelRun& run, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                     int begin, int end, std::vector<Movement>* movements) {
  if (movements->empty()) {
    for (const Tensor& output : outputs) {
      movements->emplace_back().rows.assign(static_cast<size_t>(output.num_elements() / RowElements(output.shape())),
                                            0);
    }
  }
  for (int k = begin; k < end; ++k) {
    ASSIGN_OR_RETURN(std::vector<Tensor> others, run(Nudged(inputs, static_cast<uint64_t>(k) + 1)));
    ASSIGN_OR_RETURN(const OutputsCompared compared, CompareOutputs(std::move(others), outputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      Movement& movement = (*movements)[i];
      const std::vector<double>& errors = compared.outputs[i].row_errors;
      if (compared.actual[i].shape() != outputs[i].shape()) {
        movement.extents = ShapeToString(compared.actual[i].shape());
      }
      for (size_t row = 0; row < errors.size(); ++row) movement.rows[row] = std::max(movement.rows[row], errors[row]);
    }
  }
  return absl::OkStatus();
}

void Allow(const Movement& movement, Comparison* comparison) {
  if (comparison->verdict != Verdict::kWrong) return;
  if (!movement.extents.empty()) {
    comparison->verdict = Verdict::kNotCompared;
    absl::StrAppend(&comparison->why, comparison->why.empty() ? "" : "; ", "its extents become ", movement.extents,
                    " when the inputs move by one unit in the last place: rounding decides what it holds");
    return;
  }
  if (comparison->row_errors.empty()) return;  // the extents differ, which stays wrong
  const double fixed = comparison->tolerance;
  int64_t wrong = 0, undetermined = 0;
  size_t worst = 0;  // of the wrong rows, by how many times its error is what is allowed
  double worst_excess = 0, worst_allowed = 0;
  for (size_t row = 0; row < comparison->row_errors.size(); ++row) {
    const double error = comparison->row_errors[row], explained = kRoundings * movement.rows[row];
    if (error <= fixed) continue;
    const double allowed = std::clamp(explained, fixed, std::max(fixed, kMostTolerance));
    comparison->tolerance = std::max(comparison->tolerance, allowed);
    if (error <= allowed) continue;
    ++(error <= explained ? undetermined : wrong);
    if (error <= explained || error / allowed <= worst_excess) continue;
    worst = row, worst_excess = error / allowed, worst_allowed = allowed;
  }
  if (wrong > 0) {
    comparison->why =
        absl::StrFormat("%d of its %d rows differ by more than roundings explain: row %d by %.3g, of %.3g", wrong,
                        comparison->row_errors.size(), worst, comparison->row_errors[worst], worst_allowed);
    return;
  }
  comparison->verdict = undetermined > 0 ? Verdict::kNotCompared : Verdict::kOk;
  if (undetermined == 0) return;
  comparison->why = absl::StrFormat(
      "rounding decides %d of its %d rows: they move by up to %.3g when the inputs move by one unit in the last place",
      undetermined, comparison->row_errors.size(), movement.most());
}

}  // namespace fusion
