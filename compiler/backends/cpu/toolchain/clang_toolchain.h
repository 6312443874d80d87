// ClangToolchain: builds C++ text of kernels into shared objects, with this machine's clang++ and ld. The flags belong
// to the contract of the generated text (compiler/backends/cpu): they decide vector width, contraction and scheduling.
#ifndef FUSION_COMPILER_BACKENDS_CPU_TOOLCHAIN_CLANG_TOOLCHAIN_H_
#define FUSION_COMPILER_BACKENDS_CPU_TOOLCHAIN_CLANG_TOOLCHAIN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compiler/backends/local_toolchain.h"

namespace fusion {

struct ClangToolchainOptions {
  int jobs = 0;                                      // compilations at once; 0: one for each core
  absl::Duration unit_cpu_limit = absl::Minutes(5);  // of one compilation; its wall-clock limit is ten times that
  std::string compiler;                              // path; empty: clang++ or clang++-N on PATH
  std::string temp_folder;                           // empty: $TMPDIR or /tmp
  std::function<bool()> cancelled;                   // may be empty; called from several threads
  std::vector<std::string> more_flags;               // added after Flags(); for tests that build much and time nothing
  std::vector<std::string> launcher;                 // a program, with arguments, that starts each compiler and linker
};

class ClangToolchain : public LocalToolchain {
 public:
  // Fails with FAILED_PRECONDITION, saying what to install, where there is no clang++ or no ld.
  static absl::StatusOr<std::unique_ptr<ClangToolchain>> Create(ClangToolchainOptions options = {});

  // Thread-safe. Fails with DEADLINE_EXCEEDED or CANCELLED as the options say, and with INTERNAL and clang's first
  // lines in other cases. Leaves nothing in the temporary folder. The same text gives the same bytes.
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override;
  // The same with a `cancelled` of its own (may be empty) instead of the options'.
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                 const std::function<bool()>& cancelled) const override;

  const char* kind() const override { return "cpu"; }
  const std::string& version() const override { return version_; }
  // Covers the programs of compiler and linker, which name the build of their libraries, and what they say themselves.
  std::string digest() const override { return digest_; }
  bool reproduces() const override { return true; }

  // The compiler's command line for `march`, without file names.
  static std::vector<std::string> Flags(const std::string& march);

 private:
  ClangToolchain(ClangToolchainOptions options, std::string linker, std::string version, std::string digest)
      : options_(std::move(options)),
        linker_(std::move(linker)),
        version_(std::move(version)),
        digest_(std::move(digest)) {}
  absl::StatusOr<std::string> BuildOne(const BuildUnit& unit, const std::string& folder,
                                       const std::function<bool()>& cancelled) const;

  ClangToolchainOptions options_;
  std::string linker_;
  std::string version_;
  std::string digest_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_CPU_TOOLCHAIN_CLANG_TOOLCHAIN_H_
