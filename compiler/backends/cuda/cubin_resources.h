// The resources that ptxas allotted, read from a cubin: an ELF file of 64 bits. Its section .nv.info has the registers
// (EIATTR_REGCOUNT) and the stack frame (EIATTR_FRAME_SIZE) of each function, as a format, a number, a size of 8, the
// symbol and the value; the size of .nv.shared.NAME is the shared memory that function NAME declares. NVIDIA's
// "CUDA Binary Utilities" shows the same as `cuobjdump -res-usage`.
#ifndef FUSION_COMPILER_BACKENDS_CUDA_CUBIN_RESOURCES_H_
#define FUSION_COMPILER_BACKENDS_CUDA_CUBIN_RESOURCES_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/backends/kernel_resources.h"

namespace fusion {

// Reads them for every function of the cubin. Fails with INVALID_ARGUMENT where the bytes are no cubin, or are cut
// short.
absl::StatusOr<ResourcesBySymbol> ResourcesOfCubin(const std::string& cubin);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CUDA_CUBIN_RESOURCES_H_
