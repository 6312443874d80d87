// The device for OpenCL: kernels are functions of OpenCL C (kernel_abi.md), with one in-order queue and one arena.
#ifndef FUSION_RUNTIME_DEVICES_OPENCL_OPENCL_DEVICE_H_
#define FUSION_RUNTIME_DEVICES_OPENCL_OPENCL_DEVICE_H_

#include <memory>

#include "runtime/devices/device.h"

namespace fusion {

std::unique_ptr<Device> MakeOpenClDevice();

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_OPENCL_OPENCL_DEVICE_H_
