// The verifiers of passes whose results have none in a folder of their own. Each fails with INTERNAL.
#ifndef FUSION_COMPILER_PIPELINE_VERIFY_H_
#define FUSION_COMPILER_PIPELINE_VERIFY_H_

#include <vector>

#include "absl/status/status.h"
#include "compiler/bundle/emit.h"
#include "compiler/pipeline/compilation.h"

namespace fusion {

// Checks that each layout belongs to a value of the graph and names an axis of it.
absl::Status VerifyLayouts(const ecg::Graph& graph, const ValueLayouts& layouts);

// Checks that the fusion blocks and values exist whose copies are elided, and that no value lies within itself.
absl::Status VerifyElided(const Planned& planned);

// Checks that each fusion block with a kernel is in exactly one launch, and no other fusion block is in any.
absl::Status VerifyLaunches(const Planned& planned);

// Verifies the movement graph of each launch, equal ones once.
absl::Status VerifyKernels(const std::vector<PlannedLaunch>& launches);

// The error of a pass, or of a part of one, whose result (`what`: "graph") is refused: INTERNAL, with the pass's name
// and what was found.
absl::Status MadeWrong(const char* pass, const char* what, const absl::Status& found);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_VERIFY_H_
