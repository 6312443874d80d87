// NvrtcToolchain: builds CUDA C++ text into cubins for the units' architectures, with the runtime compiler of the CUDA
// toolkit. It needs no GPU. Its library is opened at run time, so that the project builds and installs without CUDA.
#ifndef FUSION_COMPILER_BACKENDS_CUDA_TOOLCHAIN_NVRTC_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_CUDA_TOOLCHAIN_NVRTC_TOOLCHAIN_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/backends/local_toolchain.h"

namespace fusion {

// Fails with FAILED_PRECONDITION, saying where it looked, without a toolkit. A unit for an architecture that this
// version does not build for is refused with INVALID_ARGUMENT, which lists those that it does. `jobs`: units built at
// once; 0: one for each core.
absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeNvrtcToolchain(int jobs = 0);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CUDA_TOOLCHAIN_NVRTC_TOOLCHAIN_H_
