// The descriptions in machines/, which are compiled into the library.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_STORED_MACHINES_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_STORED_MACHINES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/devices/dsa_sim/machine.h"

namespace fusion::dsa {

// The names, sorted.
std::vector<std::string> StoredMachineNames();

// NOT_FOUND lists the names that there are.
absl::StatusOr<Machine> StoredMachine(const std::string& name);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_STORED_MACHINES_H_
