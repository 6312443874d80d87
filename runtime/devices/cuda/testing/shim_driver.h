// For stand-ins of CUDA libraries that are used with the CUDA driver that runs on the CPU (shim_driver.cc).
#ifndef FUSION_RUNTIME_DEVICES_CUDA_TESTING_SHIM_DRIVER_H_
#define FUSION_RUNTIME_DEVICES_CUDA_TESTING_SHIM_DRIVER_H_

#include <functional>

// Runs `step` at once, or, while the stream is captured, when its graph is launched.
void CudaShimEnqueue(void* stream, std::function<void()> step);

#endif  // FUSION_RUNTIME_DEVICES_CUDA_TESTING_SHIM_DRIVER_H_
