// Matches rows in another order: outputs of detectors are sorted by score, and where scores tie, rounding decides the
// order.
#ifndef FUSION_RUNTIME_VERDICT_TIED_ROWS_H_
#define FUSION_RUNTIME_VERDICT_TIED_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/tensor.h"
#include "runtime/verdict/compare.h"

namespace fusion {

struct Reordering {
  std::vector<Tensor> actual;       // rows of tied places are put back
  std::vector<int64_t> moved_rows;  // for each output, the number of moved rows
};

// Row r of a model's output is what all its outputs with the same first extent hold at r. If some of them agree with
// the reference place by place (the scores) and others do not, rows may trade places whose scores agree within
// `compared[..].tolerance`. Each place first keeps a row that agrees with it. Then it takes a row that agrees in all
// outputs, and at last one of the rest, by the number of outputs that agree. The caller judges what still disagrees.
// The three spans are parallel, with equal types. Outputs of other shapes than the reference's stay unchanged.
Reordering ReorderTiedRows(absl::Span<const Tensor> actual, absl::Span<const Tensor> reference,
                           absl::Span<const Comparison> compared, const Slack& slack = {});

struct OutputsCompared {
  std::vector<Tensor> actual;       // tied rows are put back
  std::vector<Comparison> outputs;  // of these tensors
  std::vector<int64_t> moved_rows;  // parallel; 0 where no row moved
};
// Compares all outputs of one run with CompareTensors, after matching tied rows.
absl::StatusOr<OutputsCompared> CompareOutputs(std::vector<Tensor> actual, const std::vector<Tensor>& reference,
                                               const Slack& slack = {});

}  // namespace fusion

#endif  // FUSION_RUNTIME_VERDICT_TIED_ROWS_H_
