#ifndef FUSION_COMPILER_BACKENDS_CPU_CPU_BACKEND_H_
#define FUSION_COMPILER_BACKENDS_CPU_CPU_BACKEND_H_

#include "compiler/backends/backend.h"

namespace fusion {

const Backend* CpuBackend();

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CPU_CPU_BACKEND_H_
