// The description of an accelerator of GraphTurbo's abstraction (OSDI 2023, Fig. 1): clusters with a global buffer
// (GB), cores with a local buffer (LB), compute units in each core, and DDR behind one DMA engine per cluster.
//
// A description is data: a JSON file that gives counts, capacities and rates. A rate says where it comes from. A rate
// that no source states is assumed and must be given as a range, so that a result can be shown over the whole range.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_MACHINE_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_MACHINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion::dsa {

inline constexpr char kAssumed[] = "assumed";

// A figure with its source. low ≤ value ≤ high; both ends equal the value where the source is not kAssumed.
struct Rate {
  double value = 0, low = 0, high = 0;
  std::string source;

  bool assumed() const { return source == kAssumed; }
};

enum class UnitKind : uint8_t { kMatrix, kVector };

struct ComputeUnit {
  std::string name;
  UnitKind kind = UnitKind::kVector;
  Rate per_cycle;       // multiply-adds (matrix) or elements (vector) in a cycle
  Rate startup_cycles;  // of each instruction
};

// Cores of one kind. A core without an LB computes on operands in its cluster's GB.
struct CoreGroup {
  int cores = 0;
  Rate local_bytes;  // the value 0: no LB
  std::vector<std::string> units;
};

struct Machine {
  std::string name;
  int clusters = 0;                // d
  std::vector<CoreGroup> groups;   // of one cluster; their cores are numbered one group after the other
  std::vector<ComputeUnit> units;  // sorted by name
  Rate global_bytes;               // of one cluster's GB
  Rate ddr_bytes;
  Rate clock_hz;
  Rate ddr_bytes_per_s;      // shared by all clusters
  Rate dma_bytes_per_cycle;  // of one cluster's DMA engine
  Rate dma_startup_cycles;
  Rate global_bytes_per_cycle;  // of one GB, shared by the cores of its cluster
  Rate mover_bytes_per_cycle;   // of one core, between GB and LB
  Rate mover_startup_cycles;
  Rate interconnect_bytes_per_cycle;  // of one cluster, shared by its cores
  Rate link_bytes_per_cycle;          // of one core, to other cores of its cluster
  Rate link_startup_cycles;
  Rate sync_cycles;

  int cores() const;                                       // c: of one cluster
  const CoreGroup& GroupOf(int core) const;                // 0 ≤ core < cores()
  const ComputeUnit* Unit(const std::string& name) const;  // nullptr if there is none

  // Returns a machine that is `factor` times as fast: each assumed rate is multiplied by it and each assumed duration
  // divided, within their ranges. Capacities and figures that have a source stay.
  Machine WithAssumedRates(double factor) const;
};

// Reads a description. INVALID_ARGUMENT names the field, what was found and what is expected.
absl::StatusOr<Machine> MachineFromJson(const std::string& text);

// Prints a description that MachineFromJson reads back as the same machine.
std::string MachineToJson(const Machine& machine);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_MACHINE_H_
