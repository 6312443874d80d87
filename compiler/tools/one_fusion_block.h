// A graph as one fusion block, with what a person asks of its schedule: the options --hand-over and --directive.
#ifndef FUSION_COMPILER_TOOLS_ONE_FUSION_BLOCK_H_
#define FUSION_COMPILER_TOOLS_ONE_FUSION_BLOCK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/plan/fusion_block.h"

namespace fusion {

// `hand_overs`: "y>z:block..device", what the operator that makes y hands to the one that makes z; one scope
// stands for both. `directives`: "y:tile=6x4", what the schedule takes where the operator that makes y is computed, or
// "form=plain". INVALID_ARGUMENT names the text that is no such thing, or the value that no operator makes.
absl::StatusOr<FusionBlock> OneFusionBlock(const ecg::Graph& graph, const std::vector<std::string>& hand_overs,
                                           const std::vector<std::string>& directives);

}  // namespace fusion

#endif  // FUSION_COMPILER_TOOLS_ONE_FUSION_BLOCK_H_
