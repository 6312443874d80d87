// Fusion blocks from sets of nodes that may overlap: a node in several sets is computed in each of them.
#ifndef FUSION_COMPILER_PLAN_COVER_H_
#define FUSION_COMPILER_PLAN_COVER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/plan/fusion_block.h"

namespace fusion {

// Each set is ascending, and every node is in at least one. Returns a fusion block for each set, in a topological order
// in which sets with earlier last nodes come first. The first fusion block that holds a node owns it, the others
// recompute it; what every reader outside recomputes is unread. Fails with INTERNAL where the fusion blocks close a
// cycle, and where a set reads a node that it does not hold and that is in several sets.
absl::StatusOr<std::vector<FusionBlock>> FusionBlocksOfCover(const ecg::Graph& graph,
                                                             const std::vector<std::vector<ecg::NodeId>>& sets);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_COVER_H_
