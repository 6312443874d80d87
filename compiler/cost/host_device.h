// The processor beside a device, which runs what the device cannot, and which simulates a device that is simulated.
#ifndef FUSION_COMPILER_COST_HOST_DEVICE_H_
#define FUSION_COMPILER_COST_HOST_DEVICE_H_

#include "compiler/cost/device_model.h"

namespace fusion {

// Instructions that every processor of the host's architecture has; rates are typical.
inline DeviceModel HostOf(const DeviceModel& device) {
  DeviceModel host;
  host.name = "the host of " + device.name;
  host.isa = device.host_isa;
  const bool neon = host.isa == "neon";
  host.march = neon ? "armv8-a" : "x86-64-v3";
  host.vector_bytes = neon ? 16 : 32;
  return host;
}

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_HOST_DEVICE_H_
