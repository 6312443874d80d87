#include "runtime/loader/pick_program.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

bool Fits(const Binding& input, const Shape& shape) { return shape == input.shape; }

bool Fits(const Program& program, absl::Span<const Shape> shapes) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!Fits(program.inputs[i], shapes[i])) return false;
  }
  return true;
}

}  // namespace

std::string BuiltFor(const Manifest& manifest) {
  if (manifest.dims.size() == 1) {
    std::vector<int64_t> extents;
    for (size_t p = 0; p < manifest.program_count(); ++p) {
      for (const auto& dim : manifest.program(p).dims) extents.push_back(dim.second);
    }
    return absl::StrCat(manifest.dims.begin()->first, "=", absl::StrJoin(extents, ", "));
  }
  std::vector<std::string> all;
  for (size_t p = 0; p < manifest.program_count(); ++p) all.push_back(DimsInWords(manifest.program(p).dims));
  return absl::StrJoin(all, "; ");
}

absl::StatusOr<size_t> PickProgram(const Manifest& manifest, absl::Span<const Shape> shapes) {
  if (shapes.size() != manifest.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bundle has ", manifest.inputs.size(), " inputs, ", shapes.size(), " were given"));
  }
  for (size_t p = 0; p < manifest.program_count(); ++p) {
    if (Fits(manifest.program(p), shapes)) return p;
  }
  std::vector<std::string> given;
  for (size_t i = 0; i < shapes.size(); ++i) {
    bool some = false;
    for (size_t p = 0; p < manifest.program_count(); ++p) some |= Fits(manifest.program(p).inputs[i], shapes[i]);
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
