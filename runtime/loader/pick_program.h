// Which of a bundle's specialisations runs inputs of given shapes.
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

// Exact shapes: "seq=32, 128, 512"; with several dimensions "batch=1 seq=32; batch=1 seq=128".
std::string BuiltFor(const Manifest& manifest);

// The index of the program for inputs of these shapes, which are parallel to the manifest's inputs: one of exactly
// these shapes, else of those that take less the one that pads to the fewest elements. INVALID_ARGUMENT naming the
// input and listing what was built.
absl::StatusOr<size_t> PickProgram(const Manifest& manifest, absl::Span<const Shape> shapes);

// Shapes of the inputs when the named dimensions have these extents; others are those of the first program that agrees
// with as many as one can. INVALID_ARGUMENT for a name that no input has.
absl::StatusOr<std::vector<Shape>> ShapesFor(const Manifest& manifest, const std::map<std::string, int64_t>& dims);

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOADER_PICK_PROGRAM_H_
