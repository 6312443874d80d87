// OpenClToolchain: turns OpenCL C text into kernel files of the runtime's device
// (runtime/devices/opencl/program_file.h). With a device on this machine its driver builds the text, and the binary
// goes into the file, too. Without a device the file holds the text alone, and every machine builds it when it loads
// the bundle.
#ifndef FUSION_COMPILER_BACKENDS_OPENCL_TOOLCHAIN_OPENCL_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_OPENCL_TOOLCHAIN_OPENCL_TOOLCHAIN_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/backends/local_toolchain.h"

namespace fusion {

struct OpenClToolchainOptions {
  // False where bundles must have the same bytes on every machine, or where the caller will fork, since drivers start
  // threads.
  bool build = true;
};

// Making it never fails: version() says which driver builds, or that none does.
std::unique_ptr<LocalToolchain> MakeOpenClToolchain(OpenClToolchainOptions options = {});

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_OPENCL_TOOLCHAIN_OPENCL_TOOLCHAIN_H_
