#include "runtime/loader/pick_program.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

bool IsPadded(const ManifestProgram& program) {
  return std::any_of(program.inputs.begin(), program.inputs.end(), [](const Binding& i) { return !i.extents.empty(); });
}

// `extents`: by buffer, the extents that earlier dimensions have set.
bool Fits(const Binding& input, const Shape& shape, std::map<int, int64_t>* extents) {
  if (shape.size() != input.shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int extent = input.extents.empty() ? -1 : input.extents[d];
    if (extent < 0 ? shape[d] != input.shape[d] : shape[d] < 1 || shape[d] > input.shape[d]) return false;
    if (extent >= 0 && extents->emplace(extent, shape[d]).first->second != shape[d]) return false;
  }
  return true;
}

bool Fits(const ManifestProgram& program, absl::Span<const Shape> shapes) {
  std::map<int, int64_t> extents;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!Fits(program.inputs[i], shapes[i], &extents)) return false;
  }
  return true;
}

int64_t InputElements(const ManifestProgram& program) {
  int64_t elements = 0;
  for (const Binding& input : program.inputs) elements += NumElements(input.shape);
  return elements;
}

}  // namespace

std::string BuiltFor(const Manifest& manifest) {
  if (manifest.dims.size() == 1) {
    std::vector<int64_t> extents;
    for (size_t p = 0; p < manifest.program_count(); ++p) {
      if (IsPadded(manifest.program(p))) continue;
      for (const auto& dim : manifest.program(p).dims) extents.push_back(dim.second);
    }
    return absl::StrCat(manifest.dims.begin()->first, "=", absl::StrJoin(extents, ", "));
  }
  std::vector<std::string> all;
  for (size_t p = 0; p < manifest.program_count(); ++p) {
    if (!IsPadded(manifest.program(p))) all.push_back(DimsInWords(manifest.program(p).dims));
  }
  return absl::StrJoin(all, "; ");
}

absl::StatusOr<size_t> PickProgram(const Manifest& manifest, absl::Span<const Shape> shapes) {
  if (shapes.size() != manifest.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bundle has ", manifest.inputs.size(), " inputs, ", shapes.size(), " were given"));
  }
  const size_t none = manifest.program_count();
  size_t picked = none;
  for (size_t p = 0; p < none; ++p) {
    const ManifestProgram& program = manifest.program(p);
    if (!Fits(program, shapes)) continue;
    if (!IsPadded(program)) return p;
    if (picked == none || InputElements(program) < InputElements(manifest.program(picked))) picked = p;
  }
  if (picked != none) return picked;
  std::vector<std::string> given;
  for (size_t i = 0; i < shapes.size(); ++i) {
    bool some = false;
    for (size_t p = 0; p < manifest.program_count(); ++p) {
      std::map<int, int64_t> extents;
      some |= Fits(manifest.program(p).inputs[i], shapes[i], &extents);
    }
    given.push_back(absl::StrCat("input '", manifest.inputs[i].name, "' is ", ShapeToString(shapes[i])));
    if (some) continue;
    return absl::InvalidArgumentError(
        manifest.others.empty() ? absl::StrCat(given.back(), ", not ", ShapeToString(manifest.inputs[i].shape))
                                : absl::StrCat(given.back(), "; this bundle was built for ", BuiltFor(manifest)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StrJoin(given, ", "), ": together they are none of what this bundle was built for: ", BuiltFor(manifest)));
}

absl::StatusOr<std::vector<Shape>> ShapesFor(const Manifest& manifest, const std::map<std::string, int64_t>& dims) {
  std::set<std::string> known;
  for (const Binding& input : manifest.inputs) known.insert(input.symbols.begin(), input.symbols.end());
  known.erase("");
  for (const auto& dim : dims) {
    if (known.count(dim.first) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("the bundle has no dimension '", dim.first, "'; it has ",
                                                   known.empty() ? "none" : absl::StrJoin(known, ", ")));
  }
  size_t nearest = 0;
  int64_t most = -1;
  for (size_t p = 0; p < manifest.program_count(); ++p) {
    int64_t agree = 0;
    for (const auto& [name, extent] : manifest.program(p).dims) {
      auto it = dims.find(name);
      agree += it != dims.end() && it->second == extent;
    }
    if (agree > most) {
      most = agree;
      nearest = p;
    }
  }
  std::vector<Shape> shapes;
  for (const Binding& input : manifest.program(nearest).inputs) {
    Shape& shape = shapes.emplace_back(input.shape);
    for (size_t d = 0; d < input.symbols.size(); ++d) {
      auto it = dims.find(input.symbols[d]);
      if (it != dims.end()) shape[d] = it->second;
    }
  }
  return shapes;
}

}  // namespace fusion
