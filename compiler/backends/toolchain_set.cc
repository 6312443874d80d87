#include "compiler/backends/toolchain_set.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<std::vector<std::string>> ToolchainSet::Build(absl::Span<const BuildUnit> units) {
  std::map<std::string, std::vector<size_t>> of_kind;
  for (size_t u = 0; u < units.size(); ++u) of_kind[units[u].kind].push_back(u);
  std::vector<std::string> binaries(units.size());
  for (const auto& [kind, members] : of_kind) {
    const auto toolchain = std::find_if(toolchains_.begin(), toolchains_.end(),
                                        [&, &kind = kind](const auto& one) { return one->kind() == kind; });
    if (toolchain == toolchains_.end()) {
      return absl::FailedPreconditionError(absl::StrCat("no toolchain here for kernels of kind '", kind, "'"));
    }
    std::vector<BuildUnit> some;
    for (const size_t u : members) some.push_back(units[u]);
    ASSIGN_OR_RETURN(std::vector<std::string> built, (*toolchain)->Build(some, nullptr));
    for (size_t i = 0; i < members.size(); ++i) binaries[members[i]] = std::move(built[i]);
  }
  return binaries;
}

}  // namespace fusion
