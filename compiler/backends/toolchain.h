// Toolchain: source text in, device binary out. The compiler asks through this interface; the server implements it by
// farming `build` tasks out to workers that own the toolchain, tests and the command-line tools by running it here.
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
  std::string source;  // complete; includes no header
};

class Toolchain {
 public:
  virtual ~Toolchain() = default;
  // Binaries parallel to `units`. A diagnostic of the tool becomes INTERNAL: the text is ours, not the user's.
  virtual absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) = 0;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_TOOLCHAIN_H_
