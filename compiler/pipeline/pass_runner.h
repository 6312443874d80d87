// The runner of the table of passes (passes.h): skips, times, verifies, and names the pass in every error.
#ifndef FUSION_COMPILER_PIPELINE_PASS_RUNNER_H_
#define FUSION_COMPILER_PIPELINE_PASS_RUNNER_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/pipeline/compilation.h"
#include "compiler/pipeline/passes.h"

namespace fusion {

// Runs one pass, unless the options disable it or the compilation does not need it, and verifies the result. Appends
// its seconds to the account's `passes`. An error of the pass begins with its name. Fails with INTERNAL where the
// result is wrong, with INVALID_ARGUMENT where a pass is disabled that cannot be, and with CANCELLED.
absl::Status RunPass(const Pass& pass, Compilation* compilation);

// Runs the rows of one part other than kBundle, in order.
absl::Status RunPasses(absl::Span<const Pass> passes, PassPart part, Compilation* compilation);

// Runs the rows of kBundle over all programs of a bundle, of which there is at least one, in order. The first program's
// clock and account have the seconds.
absl::Status RunBundlePasses(absl::Span<const Pass> passes, absl::Span<Compilation> programs);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PASS_RUNNER_H_
