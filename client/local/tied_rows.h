// Rows in another order: outputs of detectors are sorted by score, and where scores tie, rounding decides the order.
#ifndef FUSION_CLIENT_LOCAL_TIED_ROWS_H_
#define FUSION_CLIENT_LOCAL_TIED_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/local/compare.h"
#include "runtime/base/tensor.h"

namespace fusion {

struct Reordering {
  std::vector<Tensor> actual;       // rows of tied places put back
  std::vector<int64_t> moved_rows;  // of each output, how many
};

// Row r of a model's output is what all its outputs of one first extent hold at r. Where some of them agree with the
// reference place by place (the scores) and others do not, rows may trade places whose scores agree within
// `compared[..].tolerance`: each place first keeps the row that agrees with it, then takes one that agrees throughout,
// and at last one of the rest, by the number of outputs that agree. What does not agree after that is for the caller to
// judge. The three spans are parallel: types are equal. Outputs of other shapes than the reference's stay as they are.
Reordering ReorderTiedRows(absl::Span<const Tensor> actual, absl::Span<const Tensor> reference,
                           absl::Span<const Comparison> compared, const Slack& slack = {});

struct OutputsCompared {
  std::vector<Tensor> actual;       // tied rows put back
  std::vector<Comparison> outputs;  // of these
  std::vector<int64_t> moved_rows;  // parallel; 0 where none had to
};
// CompareTensors of all outputs of one run, tied rows matched.
absl::StatusOr<OutputsCompared> CompareOutputs(std::vector<Tensor> actual, const std::vector<Tensor>& reference,
                                               const Slack& slack = {});

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_TIED_ROWS_H_
