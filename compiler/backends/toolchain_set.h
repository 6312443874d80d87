// ToolchainSet: toolchains of several kinds as one, for bundles whose kernels are built by more than one of them.
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

  // Units of each kind in one call of its toolchain. FAILED_PRECONDITION for a kind that none builds.
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override;

 private:
  const std::vector<std::unique_ptr<LocalToolchain>> toolchains_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_TOOLCHAIN_SET_H_
