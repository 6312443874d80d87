#include "worker/executor/build_executor.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<std::string> BuildExecutor::Execute(const v1::Task&, const std::string& payload,
                                                   const TaskContext& context) {
  v1::BuildPayload request;
  if (!request.ParseFromString(payload)) return absl::InvalidArgumentError("the payload is no BuildPayload");
  std::vector<BuildUnit> units;
  for (v1::BuildUnitProto& unit : *request.mutable_units()) {
    units.push_back({unit.kind(), unit.march(), std::move(*unit.mutable_source())});
  }
  if (units.empty()) return v1::BuildResult().SerializeAsString();
  const auto toolchain = std::find_if(toolchains_.begin(), toolchains_.end(),
                                      [&](const LocalToolchain* one) { return one->kind() == units[0].kind; });
  if (toolchain == toolchains_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no toolchain for units of kind '", units[0].kind, "' here"));
  }
  ASSIGN_OR_RETURN(std::vector<std::string> binaries, (*toolchain)->Build(units, context.cancelled));
  v1::BuildResult result;
  result.set_toolchain((*toolchain)->version());
  for (std::string& binary : binaries) result.add_binaries(std::move(binary));
  return result.SerializeAsString();
}

}  // namespace fusion
