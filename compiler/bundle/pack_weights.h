// PackWeights: packs a bundle's constants as its kernels want them, with several threads, and hands the bytes over in
// order.
#ifndef FUSION_COMPILER_BUNDLE_PACK_WEIGHTS_H_
#define FUSION_COMPILER_BUNDLE_PACK_WEIGHTS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/movement/kernel.h"
#include "runtime/base/tensor.h"

namespace fusion {

struct WeightToPack {
  Tensor source;
  const movement::Pack* pack = nullptr;  // null: not packed; must outlive the call
};

// Gives `append` the bytes of each weight in pieces, one weight after another, on the calling thread, while `threads`
// threads make them. The bytes are the same for every number of threads. At most a few MiB a thread wait to be
// appended, besides one transformed constant. Ends with the first error that `append` returns.
absl::Status PackWeights(absl::Span<const WeightToPack> weights, int threads,
                         const std::function<absl::Status(absl::string_view)>& append);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_PACK_WEIGHTS_H_
