// A file in a cubin's form that says what functions take, and holds no code.
#ifndef FUSION_COMPILER_BACKENDS_CUDA_TESTING_FAKE_CUBIN_H_
#define FUSION_COMPILER_BACKENDS_CUDA_TESTING_FAKE_CUBIN_H_

#include <string>

#include "compiler/backends/kernel_resources.h"

namespace fusion {

std::string FakeCubin(const ResourcesBySymbol& functions);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CUDA_TESTING_FAKE_CUBIN_H_
