// For tests: CUDA text in, shared objects out that run it on the processor (runtime/devices/cuda/testing/cuda_shim.h),
// built by clang.
#ifndef FUSION_COMPILER_BACKENDS_CUDA_TESTING_SHIM_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_CUDA_TESTING_SHIM_TOOLCHAIN_H_

#include <memory>

#include "compiler/backends/local_toolchain.h"

namespace fusion {

// FAILED_PRECONDITION without clang.
absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeCudaShimToolchain();

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CUDA_TESTING_SHIM_TOOLCHAIN_H_
