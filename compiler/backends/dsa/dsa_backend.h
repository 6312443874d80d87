#ifndef FUSION_COMPILER_BACKENDS_DSA_DSA_BACKEND_H_
#define FUSION_COMPILER_BACKENDS_DSA_DSA_BACKEND_H_

#include "compiler/backends/backend.h"

namespace fusion {

// A device that runs whole programs (Backend::RunsWholePrograms). It prints no kernel.
const Backend* DsaBackend();

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_DSA_DSA_BACKEND_H_
