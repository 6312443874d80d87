// The order in which fusion blocks can run.
#ifndef FUSION_COMPILER_PLAN_ORDER_FUSION_BLOCKS_H_
#define FUSION_COMPILER_PLAN_ORDER_FUSION_BLOCKS_H_

#include <optional>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/plan/fusion_block.h"

namespace fusion {

// Orders fusion blocks that together own every node once: each comes after those that make what its members read, and
// otherwise the one with the smallest node comes first. Returns nothing if some would have to wait for each other.
std::optional<std::vector<FusionBlock>> OrderFusionBlocks(const ecg::Graph& graph,
                                                          std::vector<FusionBlock> fusion_blocks);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_ORDER_FUSION_BLOCKS_H_
