#include "compiler/backends/dsa/dsa_device_model.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/backends/dsa/toolchain/dsa_toolchain.h"
#include "compiler/cost/target.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/stored_machines.h"

namespace fusion {

DeviceModel DsaDeviceModel(const dsa::Machine& machine) {
  DeviceModel model;
  model.kind = "dsa";
  model.name = absl::StrCat(machine.name, ", simulated (", Sha256Hex(dsa::MachineToJson(machine)).substr(0, 8), ")");
  model.isa = model.march = machine.name;
  model.toolchain = kDsaToolchain;
  model.parallel_units = std::max(1, machine.cores());
  model.byte_dots = false;
  model.write_allocate = false;
  const double clock_hz = machine.clock_hz.value;
  double matrix = 0, vector = 0;
  for (const dsa::ComputeUnit& unit : machine.units) {
    double& fastest = unit.kind == dsa::UnitKind::kMatrix ? matrix : vector;
    fastest = std::max(fastest, unit.per_cycle.value);
  }
  model.fma_f32_flops_per_s = 2 * std::max({matrix, vector, 1.0}) * clock_hz;
  model.launch_s = 0;
  model.barrier_s = machine.sync_cycles.value / clock_hz;
  const double cores = model.parallel_units;
  const dsa::CoreGroup& group = machine.GroupOf(0);
  if (group.local_bytes.value > 0) {
    model.memory.push_back({"LB", static_cast<int64_t>(group.local_bytes.value),
                            machine.mover_bytes_per_cycle.value * clock_hz, /*shared=*/false});
  }
  model.memory.push_back({"GB", static_cast<int64_t>(machine.global_bytes.value),
                          machine.global_bytes_per_cycle.value * clock_hz / cores, /*shared=*/true});
  model.memory.push_back({"DDR", 0, machine.ddr_bytes_per_s.value / machine.clusters / cores, /*shared=*/true});
  return model;
}

absl::StatusOr<DeviceModel> DsaDeviceOf(const std::string& target) {
  const std::string architecture = ParseTarget(target).architecture;
  ASSIGN_OR_RETURN(const dsa::Machine machine,
                   dsa::StoredMachine(architecture.empty() ? kDefaultDsaMachine : architecture));
  return DsaDeviceModel(machine);
}

}  // namespace fusion
