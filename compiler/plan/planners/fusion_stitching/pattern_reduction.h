// PatternReduction: the candidate patterns of every vertex (FusionStitching §5.2).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_PATTERN_REDUCTION_H_
#define FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_PATTERN_REDUCTION_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/planners/fusion_stitching/delta_evaluator.h"
#include "compiler/plan/planners/fusion_stitching/kernel_graph.h"

namespace fusion {

// The paper's top k: patterns that are kept of each vertex and of each group of consumers.
inline constexpr size_t kTopPatterns = 3;

struct ScoredPattern {
  Pattern vertices;
  double score = 0;  // Delta::Score
};

// By vertex, the best first: the patterns of two or more vertices that begin with it, those that save nothing left out.
// The patterns of remote fusion are among those of their first vertex. Fails with CANCELLED.
absl::StatusOr<std::vector<std::vector<ScoredPattern>>> CandidatePatterns(const KernelGraph& graph,
                                                                          const DeltaEvaluator& evaluator,
                                                                          const std::function<bool()>& cancelled);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_PATTERN_REDUCTION_H_
