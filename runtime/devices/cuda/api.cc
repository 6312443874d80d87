#include "runtime/devices/cuda/api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace fusion::cuda {
namespace {

absl::StatusOr<const Api*> Open() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return absl::FailedPreconditionError(absl::StrCat("no CUDA driver on this machine: ", reason ? reason : ""));
  }
  static Api api;
  const char* missing = nullptr;
#define FUSION_CUDA_RESOLVE(name, symbol, parameters)                       \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #symbol)); \
  if (api.name == nullptr) missing = #symbol;
  FUSION_CUDA_FUNCTIONS(FUSION_CUDA_RESOLVE)
#undef FUSION_CUDA_RESOLVE
  if (missing != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the CUDA driver of this machine has no ", missing, ": CUDA 11.4 or newer is needed"));
  }
  const Result code = api.Init(0);
  if (code != kSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("the CUDA driver of this machine does not start: ", ToStatus(api, code, "cuInit").message()));
  }
  return &api;
}

}  // namespace

absl::StatusOr<const Api*> LoadApi() {
  static const absl::StatusOr<const Api*> api = Open();
  return api;
}

absl::Status ToStatus(const Api& api, Result code, const std::string& what) {
  if (code == kSuccess) return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  if (api.GetErrorName(code, &name) != kSuccess || name == nullptr) name = "an unknown error";
  if (api.GetErrorString(code, &text) != kSuccess || text == nullptr) text = "no description";
  const std::string message = absl::StrCat(what, ": ", name, " (", text, ")");
  return code == kOutOfMemory ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

}  // namespace fusion::cuda
