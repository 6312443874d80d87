// Which processor runs a kernel: the target's device, or, where its backend has no text for what the kernel does
// (sorting, compaction), the processor beside the device, between two launches.
#ifndef FUSION_COMPILER_BACKENDS_PLACEMENT_H_
#define FUSION_COMPILER_BACKENDS_PLACEMENT_H_

#include <string>

#include "compiler/backends/backend.h"

namespace fusion {

struct Placement {
  const Backend* backend = nullptr;
  DeviceModel device;  // the device that the text is for; its kind names the toolchain
  bool on_host = false;
};

// The device's kind must have a backend.
Placement PlaceKernel(const movement::Kernel& kernel, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_PLACEMENT_H_
