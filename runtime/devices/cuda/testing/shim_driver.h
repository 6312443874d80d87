// For libraries that play ones of CUDA's beside the driver that is the processor.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_TESTING_SHIM_DRIVER_H_
#define FUSION_RUNTIME_DEVICES_CUDA_TESTING_SHIM_DRIVER_H_

#include <functional>

// Done at once, or while the stream is captured when its graph is launched.
void CudaShimEnqueue(void* stream, std::function<void()> step);

#endif  // FUSION_RUNTIME_DEVICES_CUDA_TESTING_SHIM_DRIVER_H_
