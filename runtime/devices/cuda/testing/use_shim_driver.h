// Makes stand-ins that run on the CPU this process's CUDA driver (shim_driver.cc), cuBLASLt (shim_cublas_lt.cc) and
// cuDNN (shim_cudnn.cc), instead of the machine's own.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_TESTING_USE_SHIM_DRIVER_H_
#define FUSION_RUNTIME_DEVICES_CUDA_TESTING_USE_SHIM_DRIVER_H_

#include "absl/status/status.h"

namespace fusion {

// Call it before anything asks for the driver, which is looked up only once. If FUSION_CUDA_SHIM_NO_CUDNN is in the
// environment, the stand-in for cuDNN is left out.
absl::Status UseCudaShimDriver();

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CUDA_TESTING_USE_SHIM_DRIVER_H_
