// Makes the processor this process's CUDA driver (shim_driver.cc), its cuBLASLt (shim_cublas_lt.cc) and its cuDNN
// (shim_cudnn.cc), instead of the machine's if it has them.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_TESTING_USE_SHIM_DRIVER_H_
#define FUSION_RUNTIME_DEVICES_CUDA_TESTING_USE_SHIM_DRIVER_H_

#include "absl/status/status.h"

namespace fusion {

// Before anything asks for the driver: it is looked for once. With FUSION_CUDA_SHIM_NO_CUDNN in the environment there
// is no such cuDNN.
absl::Status UseCudaShimDriver();

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CUDA_TESTING_USE_SHIM_DRIVER_H_
