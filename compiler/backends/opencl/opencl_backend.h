#ifndef FUSION_COMPILER_BACKENDS_OPENCL_OPENCL_BACKEND_H_
#define FUSION_COMPILER_BACKENDS_OPENCL_OPENCL_BACKEND_H_

#include "compiler/backends/backend.h"

namespace fusion {

const Backend* OpenClBackend();

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_OPENCL_OPENCL_BACKEND_H_
