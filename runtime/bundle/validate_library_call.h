// Whether a library can be told to do this in a launch: part of ValidateManifest.
#ifndef FUSION_RUNTIME_BUNDLE_VALIDATE_LIBRARY_CALL_H_
#define FUSION_RUNTIME_BUNDLE_VALIDATE_LIBRARY_CALL_H_

#include "absl/status/status.h"
#include "runtime/bundle/library_call.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Arguments that there are, of element types that belong together, and no element outside their buffers; extents and
// strides fit 32 bits, as libraries take them. `launch.buffers` are in range. INVALID_ARGUMENT naming the offender.
absl::Status ValidateLibraryCall(const Program& program, const Launch& launch, const LibraryCall& call);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_VALIDATE_LIBRARY_CALL_H_
