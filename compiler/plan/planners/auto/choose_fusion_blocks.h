// The exact choice among fusion blocks that compete for the same nodes: a weighted exact cover, by branch and bound.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_AUTO_CHOOSE_FUSION_BLOCKS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_AUTO_CHOOSE_FUSION_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

// The most candidates of one region, among which the choice takes milliseconds.
inline constexpr size_t kMostCandidateFusionBlocks = 40;
// The most partial choices that are looked at. Only contrived candidates need more.
inline constexpr int64_t kMostPartialChoices = 200'000;

struct CandidateFusionBlock {
  std::vector<int> nodes;  // of the region, ascending
  double cost = 0;         // at least 0
};

struct FusionBlockChoice {
  std::vector<size_t> chosen;  // indices of candidates, ascending
  double cost = 0;
  int64_t looked_at = 0;  // partial choices
  bool exact = true;      // false: kMostPartialChoices came first, and this is the best choice found until then
};

// Chooses candidates that hold each of the nodes 0 to nodes-1 exactly once, of which none waits for another that waits
// for it, and whose costs have the least sum. `edges`: pairs of nodes of which the first must have run before the
// second. Among equally good choices it returns the one that was found first, which depends on the arguments alone.
// Fails with RESOURCE_EXHAUSTED for more than kMostCandidateFusionBlocks, with NOT_FOUND if there is no such choice,
// and with INVALID_ARGUMENT for a node outside the region or a negative cost.
absl::StatusOr<FusionBlockChoice> ChooseFusionBlocks(int nodes, const std::vector<std::pair<int, int>>& edges,
                                                     const std::vector<CandidateFusionBlock>& candidates);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_AUTO_CHOOSE_FUSION_BLOCKS_H_
