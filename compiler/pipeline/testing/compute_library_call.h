// Computes a library's call as its structure defines it, element by element on the processor. Tests compare with it.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_COMPUTE_LIBRARY_CALL_H_
#define FUSION_COMPILER_PIPELINE_TESTING_COMPUTE_LIBRARY_CALL_H_

#include <vector>

#include "runtime/bundle/library_call.h"

namespace fusion::testing {

// For f32 elements. `args` are the kernel's arguments.
void ComputeLibraryCall(const LibraryCall& call, const std::vector<void*>& args);

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_COMPUTE_LIBRARY_CALL_H_
