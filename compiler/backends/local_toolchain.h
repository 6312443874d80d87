// LocalToolchain: a toolchain of this machine, for one kind of units.
#ifndef FUSION_COMPILER_BACKENDS_LOCAL_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_LOCAL_TOOLCHAIN_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/backends/toolchain.h"

namespace fusion {

class LocalToolchain : public Toolchain {
 public:
  virtual const char* kind() const = 0;            // of the units it builds
  virtual const std::string& version() const = 0;  // "clang 14.0.6"

  // Thread-safe. `cancelled` may be empty and is called from several threads; CANCELLED soon after it turns true.
  virtual absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                         const std::function<bool()>& cancelled) const = 0;
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override {
    return Build(units, nullptr);
  }
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_LOCAL_TOOLCHAIN_H_
