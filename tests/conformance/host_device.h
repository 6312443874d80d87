// The devices that tests generate code for, such as this CPU with its widest vectors.
#ifndef FUSION_TESTS_CONFORMANCE_HOST_DEVICE_H_
#define FUSION_TESTS_CONFORMANCE_HOST_DEVICE_H_

#include <string>

#include "compiler/cost/device_model.h"

namespace fusion::conformance {

// `isa`: a narrower instruction set of this CPU ("avx2"); empty: the widest.
DeviceModel HostDevice(const std::string& isa = "");

// This machine's CPU through OpenCL. With group = 1 tasks use vectors of eight; otherwise they are work-groups of
// `group` work-items with vectors of four, as on a GPU.
DeviceModel OpenClDevice(int group);

// A CUDA GPU whose thread blocks are one warp: its threads are fibers on the CPU, which get slower the more there are.
DeviceModel CudaDevice();

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_HOST_DEVICE_H_
