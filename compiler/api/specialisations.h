// Finds the specialisations of a model that its options ask for (docs/decisions/0010-specialisations.md).
#ifndef FUSION_COMPILER_API_SPECIALISATIONS_H_
#define FUSION_COMPILER_API_SPECIALISATIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/api/compile_options.h"

namespace fusion {

inline constexpr size_t kMaxSpecialisations = 16;

// Returns the extents of `options.specialised_dims` in each specialisation: all combinations, those of the last name
// changing fastest; one empty map if there are none. Fails with INVALID_ARGUMENT for a repeated or impossible extent,
// for a name that `options.dims` binds too, and for more than kMaxSpecialisations.
absl::StatusOr<std::vector<std::map<std::string, int64_t>>> Specialisations(const CompileOptions& options);

}  // namespace fusion

#endif  // FUSION_COMPILER_API_SPECIALISATIONS_H_
