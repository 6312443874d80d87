// Costs one reduction step of a register tile on a core with two FMA and two load ports: exact enough to rank tile
// shapes.
#ifndef FUSION_COMPILER_COST_PORT_MODEL_H_
#define FUSION_COMPILER_COST_PORT_MODEL_H_

#include <cstdint>

namespace fusion {

// Cycles of one step with rows × vectors accumulators. Counts their FMAs, their loads, the latency that too few
// accumulators leave uncovered, and the stream of the shared vectors.
// - `has_broadcast`: each row multiplies by one broadcast element; otherwise each row loads its own vectors
//   (depthwise).
// - `has_shared`: the rows share one row of vectors.
double TileCycles(int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared);

// Cycles to load one shared vector from the second-level cache; a load from the first level takes half a cycle.
inline constexpr double kStreamCycles = 1.5;

// Cycles to store one lane of a vector at its own address, apart from its neighbours.
inline constexpr double kScatterCycles = 1.5;

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_PORT_MODEL_H_
