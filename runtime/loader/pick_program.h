// Decides which of a bundle's specialisations runs inputs of given shapes.
#ifndef FUSION_RUNTIME_LOADER_PICK_PROGRAM_H_
#define FUSION_RUNTIME_LOADER_PICK_PROGRAM_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/tensor.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Returns the exact shapes that were built: "seq=32, 128, 512", or with several dimensions "batch=1 seq=32; batch=1
// seq=128".
std::string BuiltFor(const Manifest& manifest);

// Returns the index of the program for inputs of these shapes, which are parallel to the manifest's inputs. A program
// with exactly these shapes is chosen first; otherwise, among the programs that accept smaller inputs, the one that
// pads to the fewest elements. Fails with INVALID_ARGUMENT that names the input and lists what was built.
absl::StatusOr<size_t> PickProgram(const Manifest& manifest, absl::Span<const Shape> shapes);

// Returns the shapes of the inputs if the named dimensions have these extents. All other extents come from the first
// program among those that agree with the most of `dims`. Fails with INVALID_ARGUMENT for a name that no input has.
absl::StatusOr<std::vector<Shape>> ShapesFor(const Manifest& manifest, const std::map<std::string, int64_t>& dims);

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOADER_PICK_PROGRAM_H_
