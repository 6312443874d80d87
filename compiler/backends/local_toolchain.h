// LocalToolchain: a toolchain on this machine, for units of one kind.
#ifndef FUSION_COMPILER_BACKENDS_LOCAL_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_LOCAL_TOOLCHAIN_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/backends/toolchain.h"
#include "runtime/base/sha256.h"

namespace fusion {

class LocalToolchain : public Toolchain {
 public:
  virtual const char* kind() const = 0;            // the kind of units that it builds
  virtual const std::string& version() const = 0;  // "clang 14.0.6"
  // SHA-256, in hex, of what tells it from other toolchains, also of the same version.
  virtual std::string digest() const { return Sha256Hex(version()); }
  // Whether it makes the same bytes of the same text on every machine that has it.
  virtual bool reproduces() const { return false; }

  // Thread-safe. `cancelled` may be empty and is called from several threads; soon after it turns true, Build fails
  // with CANCELLED.
  virtual absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                         const std::function<bool()>& cancelled) const = 0;
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override {
    return Build(units, nullptr);
  }
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_LOCAL_TOOLCHAIN_H_
