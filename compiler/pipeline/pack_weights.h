// PackWeights: the constants of a bundle as its kernels want them, made by several threads, handed over in order.
#ifndef FUSION_COMPILER_PIPELINE_PACK_WEIGHTS_H_
#define FUSION_COMPILER_PIPELINE_PACK_WEIGHTS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/movement/kernel.h"
#include "runtime/base/tensor.h"

namespace fusion {

struct WeightToPack {
  Tensor source;
  const movement::Pack* pack = nullptr;  // null: as it is; outlives the call
};

// Gives `append` the bytes of each weight, one weight after another, in pieces, on the calling thread. The bytes are
// the same for every number of `threads`, which make them meanwhile; no more than a few MiB a thread wait to be
// appended, beside one transformed constant. Ends with the first error that `append` returns.
absl::Status PackWeights(absl::Span<const WeightToPack> weights, int threads,
                         const std::function<absl::Status(absl::string_view)>& append);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PACK_WEIGHTS_H_
