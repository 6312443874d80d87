// A simulated accelerator (runtime/devices/dsa_sim) as a device: a bundle's one launch is a whole program of the
// machine. kernel_abi.md says what the bundle has.
#ifndef FUSION_RUNTIME_DEVICES_DSA_DSA_DEVICE_H_
#define FUSION_RUNTIME_DEVICES_DSA_DSA_DEVICE_H_

#include <memory>

#include "runtime/devices/device.h"

namespace fusion {

// The entry of a bundle that describes the machine (dsa_sim/machine.h).
inline constexpr char kDsaMachineEntry[] = "kernels/machine.json";

// Loading checks the whole program; a program that the machine could not run is refused with the reason. A run computes
// its numbers here, on one thread, and reports the machine's time (Executable::simulated_time).
std::unique_ptr<Device> MakeDsaDevice();

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_DSA_DSA_DEVICE_H_
