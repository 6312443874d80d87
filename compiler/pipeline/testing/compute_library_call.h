// A library's call as its structure defines it, element by element on the processor: what tests compare with.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_COMPUTE_LIBRARY_CALL_H_
#define FUSION_COMPILER_PIPELINE_TESTING_COMPUTE_LIBRARY_CALL_H_

#include <vector>

#include "runtime/bundle/library_call.h"

namespace fusion::testing {

// Of f32. `args`: the kernel's arguments.
void ComputeLibraryCall(const LibraryCall& call, const std::vector<void*>& args);

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_COMPUTE_LIBRARY_CALL_H_
