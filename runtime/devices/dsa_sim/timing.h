// Counts the cycles of a program. The numbers do not matter here, so large programs can be timed without data.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_TIMING_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_TIMING_H_

#include <map>
#include <string>
#include <vector>

#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/program.h"
#include "runtime/devices/dsa_sim/workload.h"

namespace fusion::dsa {

struct Span {
  double start = 0, end = 0;  // cycles
};

struct Timing {
  double cycles = 0;
  double seconds = 0;
  std::vector<Span> spans;  // of each instruction
  // Bytes that crossed each boundary.
  double ddr_read_bytes = 0, ddr_written_bytes = 0, moved_bytes = 0, redistributed_bytes = 0;
  // Cycles in which units of a name were busy, over all cores, and how many such units there are. The share of the
  // peak that the work needed is `work_cycles` (without start-up) divided by cycles · units.
  struct UnitUse {
    double busy_cycles = 0, work_cycles = 0;
    int units = 0;
  };
  std::map<std::string, UnitUse> units;
};

// The time model. An instruction is ready when all that it waits for has completed (order.h). It then takes
//   start-up + work / rate
// on its engine: bytes of a transfer, multiply-adds of a product, elements of a vector operation (of a reduction: those
// that it reads). A transfer also passes a shared resource, DDR for loads and stores, the GB's port for moves, the
// interconnect for redistributions. The resource serves transfers one after the other in the order in which they get
// ready, bytes / rate each, so that transfers that are together slower than it wait for each other. The program has
// passed CheckOperands.
Timing TimeProgram(const Machine& machine, const Program& program);
// The same of what a program asks of the machine. The workload was made for a machine with the same clusters, cores and
// units. Without `spans` the result has none, which saves memory where there are millions of instructions.
Timing TimeProgram(const Machine& machine, const Workload& workload, bool spans = true);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_TIMING_H_
