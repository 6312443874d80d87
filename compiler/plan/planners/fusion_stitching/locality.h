// Locality: into how many pieces an operator's result can be cut so that each piece needs one piece of an operand.
// FusionStitching's reuse within a warp or a thread block needs it ("data locality", §3.1, §4.2).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_LOCALITY_H_
#define FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_LOCALITY_H_

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion {

// For each value that the node reads and another node makes: the most equal contiguous pieces of the results such that
// piece r of a result depends on piece r of the value alone. Only cuts at the results' leading axes are looked at. 1:
// no cut is found. 0: the value's elements are not read. A softmax of [8, 128, 512] over its last axis has 1024 pieces;
// a transposition of the last two axes has 8.
std::map<ecg::ValueId, int64_t> PiecesByOperand(const ecg::Graph& graph, ecg::NodeId node);

// The most pieces that two numbers of pieces have in common; 0 restricts nothing.
int64_t CommonPieces(int64_t a, int64_t b);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_LOCALITY_H_
