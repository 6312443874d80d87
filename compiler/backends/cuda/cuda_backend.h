#ifndef FUSION_COMPILER_BACKENDS_CUDA_CUDA_BACKEND_H_
#define FUSION_COMPILER_BACKENDS_CUDA_CUDA_BACKEND_H_

#include "compiler/backends/backend.h"

namespace fusion {

const Backend* CudaBackend();

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CUDA_CUDA_BACKEND_H_
