#include "worker/executor/build_executor.h"

#include <vector>

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
  ASSIGN_OR_RETURN(std::vector<std::string> binaries, toolchain_->Build(units, context.cancelled));
  v1::BuildResult result;
  result.set_toolchain(toolchain_->version());
  for (std::string& binary : binaries) result.add_binaries(std::move(binary));
  return result.SerializeAsString();
}

}  // namespace fusion
