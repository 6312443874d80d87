// A machine for tests whose rates are round numbers: 2 clusters of 2 cores, LB 1 KB, GB 4 KB. Each core has a matrix
// unit "mme" (4 multiply-adds a cycle, start-up 2) and a vector unit "vme" (2 elements a cycle, start-up 1).
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_TESTING_SMALL_MACHINE_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_TESTING_SMALL_MACHINE_H_

#include "runtime/devices/dsa_sim/machine.h"

namespace fusion::dsa {

inline Rate Known(double value) { return Rate{value, value, value, "test"}; }

inline Machine SmallMachine() {
  Machine machine;
  machine.name = "small";
  machine.clusters = 2;
  machine.units = {{"mme", UnitKind::kMatrix, Known(4), Known(2)}, {"vme", UnitKind::kVector, Known(2), Known(1)}};
  machine.groups = {{2, Known(1024), {"mme", "vme"}}};
  machine.global_bytes = Known(4096);
  machine.ddr_bytes = Known(1 << 20);
  machine.clock_hz = Known(1e9);
  machine.ddr_bytes_per_s = Known(8e9);  // 8 bytes a cycle
  machine.dma_bytes_per_cycle = Known(16);
  machine.dma_startup_cycles = Known(10);
  machine.global_bytes_per_cycle = Known(16);
  machine.mover_bytes_per_cycle = Known(8);
  machine.mover_startup_cycles = Known(4);
  machine.interconnect_bytes_per_cycle = Known(8);
  machine.link_bytes_per_cycle = Known(4);
  machine.link_startup_cycles = Known(4);
  machine.sync_cycles = Known(5);
  return machine;
}

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_TESTING_SMALL_MACHINE_H_
