// Costs one reduction step of a register tile by the ports of a core: exact enough to rank tile shapes.
#ifndef FUSION_COMPILER_COST_PORT_MODEL_H_
#define FUSION_COMPILER_COST_PORT_MODEL_H_

#include <cstdint>

namespace fusion {

// The work of a core's ports in a cycle, and how long they are busy with a part of a register tile. The figures are
// those of x86 cores.
struct PortModel {
  double fmas_per_cycle = 2;   // of vectors
  double loads_per_cycle = 2;  // of vectors, from the nearest cache
  // The least cycles of a step, whose sums wait for those of the step before. FMA latency × issue width is 8; a little
  // more, because issue is not perfect.
  double step_cycles = 5;
  double stream_cycles = 1.5;      // to load one shared vector from the second-level cache
  double scatter_cycles = 1.5;     // to store one lane of a vector at its own address, apart from its neighbours
  double pack_cycles = 2;          // to copy an element that is packed at run time
  double transpose_cycles = 0.5;   // the same, where tiles of elements are transposed in registers
  double strided_broadcast = 0.5;  // share of the arithmetic that is lost where each broadcast comes from another line
};

// Cycles of one step with rows × vectors accumulators. Counts their FMAs, their loads, the latency that too few
// accumulators leave uncovered, and the stream of the shared vectors.
// - `has_broadcast`: each row multiplies by one broadcast element; otherwise each row loads its own vectors
//   (depthwise).
// - `has_shared`: the rows share one row of vectors.
double TileCycles(const PortModel& ports, int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_PORT_MODEL_H_
