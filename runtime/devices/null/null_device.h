// A device that runs nothing: outputs are zero and launches take no time. It serves tests of the code around a device.
#ifndef FUSION_RUNTIME_DEVICES_NULL_NULL_DEVICE_H_
#define FUSION_RUNTIME_DEVICES_NULL_NULL_DEVICE_H_

#include <memory>

#include "runtime/devices/device.h"

namespace fusion {

std::unique_ptr<Device> MakeNullDevice();

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_NULL_NULL_DEVICE_H_
