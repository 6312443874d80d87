#include "compiler/backends/cuda/toolchain/nvrtc_toolchain.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr size_t kLogBytes = 2000;
constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so"};

using NvrtcProgram = struct _nvrtcProgram*;
using Result = int;  // nvrtcResult; 0: success

// Declared as in nvrtc.h, which is not needed to build.
#define FUSION_NVRTC_FUNCTIONS(F)                                                                                \
  F(GetErrorString, const char*, (Result code))                                                                  \
  F(Version, Result, (int* major, int* minor))                                                                   \
  F(GetNumSupportedArchs, Result, (int* count))                                                                  \
  F(GetSupportedArchs, Result, (int* architectures))                                                             \
  F(CreateProgram, Result,                                                                                       \
    (NvrtcProgram * program, const char* source, const char* name, int headers, const char* const* header_texts, \
     const char* const* header_names))                                                                           \
  F(DestroyProgram, Result, (NvrtcProgram * program))                                                            \
  F(CompileProgram, Result, (NvrtcProgram program, int options, const char* const* option_texts))                \
  F(GetCUBINSize, Result, (NvrtcProgram program, size_t * size))                                                 \
  F(GetCUBIN, Result, (NvrtcProgram program, char* cubin))                                                       \
  F(GetProgramLogSize, Result, (NvrtcProgram program, size_t * size))                                            \
  F(GetProgramLog, Result, (NvrtcProgram program, char* log))

struct Nvrtc {
#define FUSION_NVRTC_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  FUSION_NVRTC_FUNCTIONS(FUSION_NVRTC_MEMBER)
#undef FUSION_NVRTC_MEMBER
};

absl::StatusOr<const Nvrtc*> Open() {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    if (library == nullptr) library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no NVRTC here, which builds kernels for target cuda (looked for ",
                     absl::StrJoin(kLibraries, ", "), "): install the CUDA toolkit"));
  }
  static Nvrtc nvrtc;
  const char* missing = nullptr;
#define FUSION_NVRTC_RESOLVE(name, result, parameters)                                \
  nvrtc.name = reinterpret_cast<decltype(nvrtc.name)>(dlsym(library, "nvrtc" #name)); \
  if (nvrtc.name == nullptr) missing = "nvrtc" #name;
  FUSION_NVRTC_FUNCTIONS(FUSION_NVRTC_RESOLVE)
#undef FUSION_NVRTC_RESOLVE
  if (missing != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("NVRTC has no ", missing, ": CUDA 11.2 or newer is needed"));
  }
  return &nvrtc;
}

absl::StatusOr<const Nvrtc*> LoadNvrtc() {
  static const absl::StatusOr<const Nvrtc*> nvrtc = Open();
  return nvrtc;
}

class NvrtcToolchain : public LocalToolchain {
 public:
  NvrtcToolchain(const Nvrtc* nvrtc, int jobs) : nvrtc_(nvrtc), jobs_(jobs) {
    int major = 0, minor = 0, count = 0;
    nvrtc_->Version(&major, &minor);
    version_ = absl::StrCat("NVRTC ", major, ".", minor);
    if (nvrtc_->GetNumSupportedArchs(&count) == 0 && count > 0) {
      architectures_.resize(static_cast<size_t>(count));
      nvrtc_->GetSupportedArchs(architectures_.data());
    }
  }

  const char* kind() const override { return "cuda"; }
  const std::string& version() const override { return version_; }

  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units,
                                                 const std::function<bool()>& cancelled) const override {
    std::vector<absl::StatusOr<std::string>> built(units.size(), absl::CancelledError("the build was cancelled"));
    std::atomic<size_t> next{0};
    auto work = [&] {
      for (size_t u = next++; u < units.size() && !(cancelled && cancelled()); u = next++)
        built[u] = BuildOne(units[u]);
    };
    std::vector<std::thread> threads;
    const size_t at_once = std::min<size_t>(std::max(1, jobs_), units.size());
    for (size_t t = 1; t < at_once; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    std::vector<std::string> binaries;
    for (absl::StatusOr<std::string>& one : built) {
      RETURN_IF_ERROR(one.status());
      binaries.push_back(*std::move(one));
    }
    return binaries;
  }

 private:
  absl::Status CheckArchitecture(const std::string& march) const {
    int number = 0;
    absl::string_view digits = march;
    absl::ConsumeSuffix(&digits, "a");
    const bool named = absl::ConsumePrefix(&digits, "sm_") && absl::SimpleAtoi(digits, &number);
    if (named && std::count(architectures_.begin(), architectures_.end(), number) > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(version_, " does not build for '", march, "'; it builds for sm_",
                                                   absl::StrJoin(architectures_, ", sm_")));
  }

  absl::StatusOr<std::string> BuildOne(const BuildUnit& unit) const {
    if (unit.kind != kind()) {
      return absl::InvalidArgumentError(absl::StrCat("NVRTC builds units of kind 'cuda', not '", unit.kind, "'"));
    }
    RETURN_IF_ERROR(CheckArchitecture(unit.march));
    NvrtcProgram program = nullptr;
    RETURN_IF_ERROR(Check(nvrtc_->CreateProgram(&program, unit.source.c_str(), "kernel.cu", 0, nullptr, nullptr)));
    absl::StatusOr<std::string> cubin = Compile(program, unit.march);
    nvrtc_->DestroyProgram(&program);
    return cubin;
  }

  absl::StatusOr<std::string> Compile(NvrtcProgram program, const std::string& march) const {
    const std::string architecture = absl::StrCat("--gpu-architecture=", march);
    const char* const options[] = {architecture.c_str(), "--std=c++17", "--disable-warnings"};
    if (const Result code = nvrtc_->CompileProgram(program, 3, options); code != 0) {
      size_t size = 0;
      std::string log;
      if (nvrtc_->GetProgramLogSize(program, &size) == 0) {
        log.resize(size);
        nvrtc_->GetProgramLog(program, log.data());
        log = log.substr(0, log.find('\0'));
      }
      if (log.size() > kLogBytes) log = absl::StrCat(log.substr(0, kLogBytes), "…");
      return absl::InternalError(absl::StrCat(version_, " does not build a generated kernel for ", march, " (",
                                              nvrtc_->GetErrorString(code), "):\n", log));
    }
    size_t size = 0;
    RETURN_IF_ERROR(Check(nvrtc_->GetCUBINSize(program, &size)));
    std::string cubin(size, '\0');
    RETURN_IF_ERROR(Check(nvrtc_->GetCUBIN(program, cubin.data())));
    return cubin;
  }

  absl::Status Check(Result code) const {
    if (code == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(version_, ": ", nvrtc_->GetErrorString(code)));
  }

  const Nvrtc* const nvrtc_;
  const int jobs_;
  std::string version_;
  std::vector<int> architectures_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LocalToolchain>> MakeNvrtcToolchain(int jobs) {
  ASSIGN_OR_RETURN(const Nvrtc* nvrtc, LoadNvrtc());
  if (jobs <= 0) jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::make_unique<NvrtcToolchain>(nvrtc, jobs);
}

}  // namespace fusion
