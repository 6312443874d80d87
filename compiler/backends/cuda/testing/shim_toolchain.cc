#include "compiler/backends/cuda/testing/shim_toolchain.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Returns FUSION_CUDA_KERNEL(name, threads) for each `__launch_bounds__(threads, 1) name(` of the text.
std::string KernelList(absl::string_view text) {
  constexpr absl::string_view kBounds = "__launch_bounds__(";
  std::string list;
  for (size_t at = text.find(kBounds); at != absl::string_view::npos; at = text.find(kBounds, at)) {
    at += kBounds.size();
    const size_t end = text.find(',', at), name = text.find(')', at) + 2;
    size_t name_end = name;
    while (name_end < text.size() && (absl::ascii_isalnum(text[name_end]) || text[name_end] == '_')) ++name_end;
    absl::StrAppend(&list, "FUSION_CUDA_KERNEL(", text.substr(name, name_end - name), ", ", text.substr(at, end - at),
                    ")\n");
  }
  return list;
}

class ShimToolchain : public LocalToolchain {
 public:
  explicit ShimToolchain(std::unique_ptr<ClangToolchain> clang)
      : clang_(std::move(clang)), version_(absl::StrCat("CUDA as C++, ", clang_->version())) {}

  const char* kind() const override { return "cuda"; }
  const std::string& version() const override { return version_; }

  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                 const std::function<bool()>& cancelled) const override {
    std::vector<BuildUnit> plain;
    for (const BuildUnit& unit : units) {
      plain.push_back({"cpu", "native",
                       absl::StrCat("#include \"" FUSION_SOURCE_FOLDER "/runtime/devices/cuda/testing/cuda_shim.h\"\n",
                                    unit.source, KernelList(unit.source))});
    }
    return clang_->Build(plain, cancelled);
  }

 private:
  const std::unique_ptr<ClangToolchain> clang_;
  const std::string version_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeCudaShimToolchain() {
  ClangToolchainOptions options;
  options.more_flags = {"-O1"};  // much is built, nothing is timed
  ASSIGN_OR_RETURN(std::unique_ptr<ClangToolchain> clang, ClangToolchain::Create(options));
  return std::make_unique<ShimToolchain>(std::move(clang));
}

}  // namespace fusion
