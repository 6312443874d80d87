// Toolchain: turns source text into device binaries. The compiler asks through this interface. The server implements it
// by giving `build` tasks to workers that own the toolchain; tests and command-line tools run the toolchain here.
#ifndef FUSION_COMPILER_BACKENDS_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_TOOLCHAIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace fusion {

struct BuildUnit {
  std::string kind;    // "cpu": C++ text to a shared object
  std::string march;   // "x86-64-v4", "x86-64-v4+avx512vnni", "native", ...
  std::string source;  // complete: it includes no header
};

class Toolchain {
 public:
  virtual ~Toolchain() = default;
  // Returns binaries parallel to `units`. A diagnostic of the tool becomes INTERNAL, because the text is ours, not the
  // user's.
  virtual absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) = 0;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_TOOLCHAIN_H_
