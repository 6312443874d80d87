// The device model of a simulated accelerator, from its description.
#ifndef FUSION_COMPILER_BACKENDS_DSA_DSA_DEVICE_MODEL_H_
#define FUSION_COMPILER_BACKENDS_DSA_DSA_DEVICE_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "runtime/devices/dsa_sim/machine.h"

namespace fusion {

inline constexpr char kDefaultDsaMachine[] = "stcp920";

// Programs are made for one cluster: units, memories and rates are a core's share of one. The name holds a digest of
// the description, so that profiles of two descriptions of one machine stay apart.
DeviceModel DsaDeviceModel(const dsa::Machine& machine);

// The stored machine of a target: "dsa" (the default machine), "dsa:goya". NOT_FOUND lists the machines.
absl::StatusOr<DeviceModel> DsaDeviceOf(const std::string& target);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_DSA_DSA_DEVICE_MODEL_H_
