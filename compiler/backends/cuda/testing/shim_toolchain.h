// For tests: builds CUDA text with clang into shared objects that run it on the processor
// (runtime/devices/cuda/testing/cuda_shim.h).
#ifndef FUSION_COMPILER_BACKENDS_CUDA_TESTING_SHIM_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_CUDA_TESTING_SHIM_TOOLCHAIN_H_

#include <memory>

#include "compiler/backends/local_toolchain.h"

namespace fusion {

// Fails with FAILED_PRECONDITION without clang.
absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeCudaShimToolchain();

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CUDA_TESTING_SHIM_TOOLCHAIN_H_
