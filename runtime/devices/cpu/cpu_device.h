// The CPU device: kernels are functions of shared objects (kernel_abi.h); threads come from a pool of the process
// (thread_pool.h).
#ifndef FUSION_RUNTIME_DEVICES_CPU_CPU_DEVICE_H_
#define FUSION_RUNTIME_DEVICES_CPU_CPU_DEVICE_H_

#include <memory>

#include "runtime/devices/device.h"

namespace fusion {

std::unique_ptr<Device> MakeCpuDevice();

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_CPU_DEVICE_H_
