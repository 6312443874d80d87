// A bundle made by hand, for tests: x: f32[64, 8] -> y = relu(x * w + b) and w, in two launches of which the first has
// two phases that need their barrier. w[c] = c + 1, b[c] = -1.
#ifndef FUSION_RUNTIME_LOADER_TESTING_TINY_BUNDLE_H_
#define FUSION_RUNTIME_LOADER_TESTING_TINY_BUNDLE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Runs the clang++ of the machine on C++ text.
absl::StatusOr<std::string> BuildSharedObject(const std::string& source);

extern const char kTinyKernelSource[];

// The manifest without digests, for the machine's own instruction set.
Manifest TinyManifest();

// The same, but of y's columns only the first three are there.
Manifest TinyDynamicManifest();

// That for 64 rows, and one for 16.
Manifest TinySpecialisedManifest();

// `shared_object` is the entry kernels/cpu.so; `more`: others, by name.
absl::Status WriteTinyBundle(const std::string& path, const std::string& shared_object, const Manifest& manifest,
                             const std::map<std::string, std::string>& more = {});

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOADER_TESTING_TINY_BUNDLE_H_
