// The text at the beginning of every generated CUDA file: the names of kernel text (compiler/backends/text) in CUDA C++
// as NVRTC compiles it, without any header.
#ifndef FUSION_COMPILER_BACKENDS_CUDA_PRELUDE_H_
#define FUSION_COMPILER_BACKENDS_CUDA_PRELUDE_H_

#include <string>

namespace fusion::cuda {

// `lanes`: elements of a vector, which one thread computes.
std::string Prelude(int lanes);

}  // namespace fusion::cuda

#endif  // FUSION_COMPILER_BACKENDS_CUDA_PRELUDE_H_
