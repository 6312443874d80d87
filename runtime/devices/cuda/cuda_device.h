// The device for NVIDIA GPUs: kernels are functions of a cubin (kernel_abi.md), with one stream and one arena.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_CUDA_DEVICE_H_
#define FUSION_RUNTIME_DEVICES_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "runtime/devices/device.h"

namespace fusion {

std::unique_ptr<Device> MakeCudaDevice();

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CUDA_CUDA_DEVICE_H_
