#include "compiler/api/specialisations.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace fusion {

absl::StatusOr<std::vector<std::map<std::string, int64_t>>> Specialisations(const CompileOptions& options) {
  std::vector<std::map<std::string, int64_t>> all(1);
  for (const auto& [name, extents] : options.specialised_dims) {
    if (options.dims.count(name) > 0) {
      return absl::InvalidArgumentError(absl::StrCat("dimension '", name, "' is bound twice"));
    }
    std::set<int64_t> seen;
    for (int64_t extent : extents) {
      if (extent < 1) {
        return absl::InvalidArgumentError(absl::StrCat("--dim ", name, "=", extent, " must be at least 1"));
      }
      if (!seen.insert(extent).second) {
        return absl::InvalidArgumentError(absl::StrCat("--dim ", name, ": ", extent, " is given twice"));
      }
    }
    if (extents.empty()) return absl::InvalidArgumentError(absl::StrCat("--dim ", name, " has no extents"));
    if (all.size() * extents.size() > kMaxSpecialisations) {
      return absl::InvalidArgumentError(absl::StrCat("--dim asks for more than ", kMaxSpecialisations,
                                                     " specialisations in one bundle (every combination of the "
                                                     "extents is one); give fewer, or make several bundles"));
    }
    std::vector<std::map<std::string, int64_t>> combined;
    for (const auto& dims : all) {
      for (int64_t extent : extents) {
        combined.push_back(dims);
        combined.back()[name] = extent;
      }
    }
    all = std::move(combined);
  }
  return all;
}

}  // namespace fusion
