// NvrtcToolchain: CUDA C++ text in, cubins for the units' architectures out, by the runtime compiler of the CUDA
// toolkit. It needs no GPU. Its library is opened at run time, so that everything is built and installed without CUDA.
#ifndef FUSION_COMPILER_BACKENDS_CUDA_TOOLCHAIN_NVRTC_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_CUDA_TOOLCHAIN_NVRTC_TOOLCHAIN_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/backends/local_toolchain.h"

namespace fusion {

// FAILED_PRECONDITION, saying where it was looked for, without a toolkit. A unit for an architecture that this version
// does not build for is INVALID_ARGUMENT listing those that it does. `jobs`: units at once; 0: as many as cores.
absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeNvrtcToolchain(int jobs = 0);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CUDA_TOOLCHAIN_NVRTC_TOOLCHAIN_H_
