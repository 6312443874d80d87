// The device that tests generate code for: the widest vectors this CPU runs.
#ifndef FUSION_TESTS_CONFORMANCE_HOST_DEVICE_H_
#define FUSION_TESTS_CONFORMANCE_HOST_DEVICE_H_

#include <string>

#include "compiler/cost/device_model.h"

namespace fusion::conformance {

// `isa`: a narrower instruction set that this CPU has as well ("avx2"); empty: the widest.
DeviceModel HostDevice(const std::string& isa = "");

// This machine's processor through OpenCL: in vectors of eight; or as a GPU, in groups of work-items with vectors of
// four.
DeviceModel OpenClDevice(int group);

// A GPU of CUDA whose blocks are a warp: what the processor plays in fibers is slower the more of them there are.
DeviceModel CudaDevice();

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_HOST_DEVICE_H_
