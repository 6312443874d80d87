// OpenClToolchain: OpenCL C text in, kernel files of the runtime's device out (runtime/devices/opencl/program_file.h).
// With a device on this machine the text is built by its driver, whose binary goes along; without one the text alone is
// the result, and every machine builds it when it loads the bundle.
#ifndef FUSION_COMPILER_BACKENDS_OPENCL_TOOLCHAIN_OPENCL_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_OPENCL_TOOLCHAIN_OPENCL_TOOLCHAIN_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/backends/local_toolchain.h"

namespace fusion {

struct OpenClToolchainOptions {
  // Off where bundles are to be the same bytes on every machine, or where the caller will fork: drivers start threads.
  bool build = true;
};

// Never fails to be made: version() says which driver builds, or that none does.
std::unique_ptr<LocalToolchain> MakeOpenClToolchain(OpenClToolchainOptions options = {});

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_OPENCL_TOOLCHAIN_OPENCL_TOOLCHAIN_H_
