// Rows in another order: outputs of detectors are sorted by score, and where scores tie, rounding decides the order.
#ifndef FUSION_CLIENT_LOCAL_TIED_ROWS_H_
#define FUSION_CLIENT_LOCAL_TIED_ROWS_H_

#include <cstdint>
#include <optional>
#include <vector>

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
// `compared[..].tolerance`, as long as whole rows then agree. nullopt where that does not make outputs agree that did
// not. The three spans are parallel: types and shapes are equal.
std::optional<Reordering> ReorderTiedRows(absl::Span<const Tensor> actual, absl::Span<const Tensor> reference,
                                          absl::Span<const Comparison> compared);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_TIED_ROWS_H_
