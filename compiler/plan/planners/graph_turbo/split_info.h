// SplitInfo (GraphTurbo, section 3.1, Algorithm 1): how a sub-graph can be split into instances that fit the fast
// memory, and the choice among its entries (Eq. 1).
//
// Readings, where the paper leaves a choice:
//   - sizeof(LB) is that of all cores of a cluster: an instance is distributed over them (section 2.1). One LB of 64 KB
//     alone holds no instance of the paper's models at its batches.
//   - peak / v is not divided but inferred: the footprint of an instance, halos included (sub_graph.h).
//   - v must divide the extent, so that the instances are homogeneous (section 3.3), and the extent itself is always
//     tried, which the paper's list 1, 2, 4, 8, 9, … leaves out below 8.
//   - an intermediate counts where its part in an instance is smaller than the whole. The paper asks that a dimension
//     matches and is divisible; a halo divides nothing.
//   - one tuple a dimension, with all operators that it splits. As printed, each intermediate adds a tuple and a
//     sub-graph without intermediates none.
//   - the cost model against recomputation, which the paper names and does not give: the operators of all instances
//     together may compute `recomputation` times what the sub-graph computes at once.
// Beyond the paper:
//   - where the outermost dimension cannot be split finely enough, it is split to single indices and another one is
//     split within: a batch of images whose single image does not fit. Where that is not fine enough either, the one
//     whose single indices need the least memory is split to these, too.
//   - the outermost dimension is split alone if that fits, and no other one without it. Eq. 1 as printed prefers 28
//     strips through all images to 32 images, and where neighbours cut a batch differently each instance waits for all
//     of the other's: the order can no longer be depth first.
//   - where no factor of the list from v up to 2 · v divides the extent, v cuts it unevenly, with a shorter last piece.
//     197 tokens, a prime number, would else be one piece or 197.
// `literal` leaves out the last two.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_SPLIT_INFO_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_SPLIT_INFO_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/plan/planners/graph_turbo/sub_graph.h"

namespace fusion::graph_turbo {

struct SplitLimits {
  double fast_bytes = 0;        // what an instance may need at once: c · LB without the part for weights
  double recomputation = 1.25;  // ≥ 1
  bool literal = false;         // Algorithm 1 and Eq. 1 as printed, but for a dimension within another
};

// A 4D tuple of SplitInfo; split_d is 1 for all that are kept.
struct Split {
  int64_t n = 0;    // n_d: operators that it splits
  int64_t f = 1;    // f_d: instances
  int d = 0;        // of the output's dimensions, from 0
  Factors factors;  // of the output: f at d, and what stands outside of it
  double peak_bytes = 0;
  double recomputation = 1;  // work of all instances / work of the whole

  bool operator==(const Split&) const = default;
};

// Empty where no instance fits.
std::vector<Split> SplitInfo(const OpGraph& graph, const SubGraph& sub_graph, const SplitLimits& limits);

// lexmax (n_d, -f_d, -d), Eq. 1. nullopt for an empty list.
std::optional<Split> BestSplit(const std::vector<Split>& splits);

// The values of v that are tried for an extent, ascending.
std::vector<int64_t> SplitFactors(int64_t extent, bool literal);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_SPLIT_INFO_H_
