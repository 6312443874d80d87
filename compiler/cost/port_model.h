// PortModel: the work of a core's ports and of its nearest cache in a cycle.
#ifndef FUSION_COMPILER_COST_PORT_MODEL_H_
#define FUSION_COMPILER_COST_PORT_MODEL_H_

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
  // Lines of the nearest cache whose addresses differ by whole pages and that it holds beside each other: the fewest of
  // the cores in use, so that a plan serves all of them.
  double near_ways = 8;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_PORT_MODEL_H_
