// How a layer's part of one instance is distributed over cores, and how a core's part is cut into tiles whose operands
// fit its LB (GraphTurbo, OSDI 2023, sections 3.4 and 4.1). Both are searched with an estimate of the cycles.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_TILING_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_TILING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/plan/planners/graph_turbo/lowering/layer.h"
#include "compiler/plan/planners/graph_turbo/sub_graph.h"

namespace fusion::graph_turbo {

// The rates of a core, a cycle.
struct CoreRates {
  double matrix = 1, vector = 1, special = 1;  // multiply-adds, scalar operations
  double transfer_bytes = 1;                   // into its LB, all cores of the cluster at once
  double unit_startup = 0, transfer_startup = 0;
  // The cluster's DMA engine serves its cores in turn. So many bytes of a stream from DDR stay in the GB for
  // a while, for tiles that need them again.
  double ddr_bytes = 1, ddr_startup = 0, stream_bytes = 0;
};

// Cuts the parts of all outputs of a layer alike; empty where an output cannot be cut so.
std::vector<std::vector<Region>> CutOutputs(const std::vector<Region>& outputs, const Factors& factors);

// Cycles that the units of a core need for these parts of the layer's tensors.
double UnitCycles(const Layer& layer, const std::vector<Region>& tensors, const CoreRates& rates);

// The factors by which the outputs are distributed over at most `cores` cores. `fetched_bytes(core, needs)` are the
// bytes that a core has to bring into its LB.
Factors ChooseBinding(const Layer& layer, const std::vector<Region>& outputs, int cores, const CoreRates& rates,
                      const std::function<double(int core, const AccessMap::Needs& needs)>& fetched_bytes);

struct TilingRequest {
  const Layer* layer = nullptr;
  std::vector<Region> outputs;  // the core's part
  std::vector<bool> resident;   // by input of the layer: needs no room, as it is in the LB or is gathered from DDR
  std::vector<bool> weight;     // by input
  // By input: how many different parts the cores stream from DDR; 0: it is in the GB or in LBs. Empty: all are.
  std::vector<int> ddr_parts = {};
  bool outputs_have_room = true;  // outside of the budget
  bool outputs_leave = false;     // each tile's results leave the LB for the GB or, of so many cores, for DDR
  int ddr_outputs = 0;
  int64_t element_bytes = 2;
  int64_t budget_bytes = 0;
};

struct Tiling {
  bool fits = false;
  Factors factors;          // of the core's part of the first output
  int64_t chunks = 1;       // of the layer's chunk axis
  std::vector<bool> whole;  // by input: what all tiles need is brought once
  std::vector<int> loops;   // dimensions, outermost first
  double bytes = 0, cycles = 0;
};

// The tiles with the least estimate that fit. Without any, the smallest ones, and `fits` is false.
Tiling ChooseTiling(const TilingRequest& request, const CoreRates& rates);

// The part of a chunk axis that chunk `number` of `chunks` has.
ReductionPart ChunkPart(const Layer& layer, int64_t chunks, int64_t number);

// A core's parts in the order of their loops, each for all outputs.
std::vector<std::vector<Region>> TilesOf(const std::vector<Region>& outputs, const Tiling& tiling);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_TILING_H_
