// ToolchainSet: toolchains of several kinds as one, for bundles whose kernels need more than one of them.
#ifndef FUSION_COMPILER_BACKENDS_TOOLCHAIN_SET_H_
#define FUSION_COMPILER_BACKENDS_TOOLCHAIN_SET_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/backends/local_toolchain.h"

namespace fusion {

class ToolchainSet : public Toolchain {
 public:
  explicit ToolchainSet(std::vector<std::unique_ptr<LocalToolchain>> toolchains) : toolchains_(std::move(toolchains)) {}

  // Builds all units of a kind in one call of its toolchain. Fails with FAILED_PRECONDITION for a kind without a
  // toolchain.
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override;

 private:
  const std::vector<std::unique_ptr<LocalToolchain>> toolchains_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_TOOLCHAIN_SET_H_
