// Checks whether a launch may call a library in this way: a part of ValidateManifest.
#ifndef FUSION_RUNTIME_BUNDLE_VALIDATE_LIBRARY_CALL_H_
#define FUSION_RUNTIME_BUNDLE_VALIDATE_LIBRARY_CALL_H_

#include "absl/status/status.h"
#include "runtime/bundle/library_call.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Checks that the call's arguments exist, that their element types belong together, that no element lies outside its
// buffer, and that extents and strides fit the 32 bits that libraries take. `launch.buffers` must be in range. Fails
// with INVALID_ARGUMENT and names the offender.
absl::Status ValidateLibraryCall(const ManifestProgram& program, const Launch& launch, const LibraryCall& call);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_VALIDATE_LIBRARY_CALL_H_
