// The texts that `ecg-opt --print` makes of what a planner decides. People and golden tests read them; nothing parses
// them.
#ifndef FUSION_COMPILER_TOOLS_STAGE_TEXTS_H_
#define FUSION_COMPILER_TOOLS_STAGE_TEXTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/pipeline/compilation.h"
#include "compiler/pipeline/realised_plan.h"

namespace fusion {

// The nodes of each fusion block, and the decision about each edge with its reason.
std::string PlanText(const ecg::Graph& graph, const FusionPlan& plan);
// Each fusion block's account, and its hand-overs as they are and as the plan allows. `realised` is parallel to the
// plan's fusion blocks.
std::string ScopesText(const ecg::Graph& graph, const FusionPlan& plan,
                       const std::vector<RealisedFusionBlock>& realised);
// The choices of each fusion block's schedule: what is taken, and what could be (--directive).
absl::StatusOr<std::string> ChoicesText(const Planned& planned, GraphFusionOracle* oracle);
std::string LayoutText(const ecg::Graph& graph, const ValueLayouts& layouts);
// The fusion blocks of each launch, and those that have no kernel.
std::string LaunchesText(const Planned& planned);

}  // namespace fusion

#endif  // FUSION_COMPILER_TOOLS_STAGE_TEXTS_H_
