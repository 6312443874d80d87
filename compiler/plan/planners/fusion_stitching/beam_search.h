// Fusion plans from candidate patterns that may overlap: a beam search (FusionStitching §5.3).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_BEAM_SEARCH_H_
#define FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_BEAM_SEARCH_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/planners/fusion_stitching/pattern_reduction.h"

namespace fusion {

inline constexpr size_t kBeamWidth = 3;

// Returns at most kBeamWidth plans, the best first: patterns that do not overlap and close no cycle together. Vertices
// in no pattern stay kernels of their own. Fails with CANCELLED.
absl::StatusOr<std::vector<std::vector<Pattern>>> SearchPlans(const KernelGraph& graph,
                                                              const std::vector<std::vector<ScoredPattern>>& candidates,
                                                              const std::function<bool()>& cancelled);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_BEAM_SEARCH_H_
