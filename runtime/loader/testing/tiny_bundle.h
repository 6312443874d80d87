// A bundle made by hand, for tests: x: f32[64, 8] -> y = relu(x * w + b) and w. It has two launches; the first has two
// phases that need the barrier between them. w[c] = c + 1, b[c] = -1.
#ifndef FUSION_RUNTIME_LOADER_TESTING_TINY_BUNDLE_H_
#define FUSION_RUNTIME_LOADER_TESTING_TINY_BUNDLE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Compiles C++ text with the machine's clang++ and returns the shared object.
absl::StatusOr<std::string> BuildSharedObject(const std::string& source);

extern const char kTinyKernelSource[];

// The manifest without digests, for the machine's own instruction set.
Manifest TinyManifest();

// The same, but only the first three columns of y exist.
Manifest TinyDynamicManifest();

// TinyManifest for 64 rows, and a second specialisation for 16 rows.
Manifest TinySpecialisedManifest();

// TinyManifest with a launch more, which repeats behind the first phase of k0: it adds b to two rows of t an iteration,
// by 32 launches of `one_turn`, or by one of `turns`, which runs the iterations itself.
Manifest TinyRepeatingManifest(bool in_launch);

// `shared_object` becomes the entry kernels/cpu.so; `more` holds further entries by name.
absl::Status WriteTinyBundle(const std::string& path, const std::string& shared_object, const Manifest& manifest,
                             const std::map<std::string, std::string>& more = {});

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOADER_TESTING_TINY_BUNDLE_H_
