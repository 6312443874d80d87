#include "runtime/devices/cuda/testing/use_shim_driver.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "absl/strings/str_cat.h"

namespace fusion {

absl::Status UseCudaShimDriver() {
  // dlopen finds a library that is already loaded by its name, wherever its file lies.
  const bool open = dlopen(FUSION_CUDA_SHIM_DRIVER, RTLD_NOW | RTLD_LOCAL) != nullptr &&
                    dlopen(FUSION_CUDA_SHIM_CUBLAS_LT, RTLD_NOW | RTLD_LOCAL) != nullptr &&
                    (getenv("FUSION_CUDA_SHIM_NO_CUDNN") != nullptr ||
                     dlopen(FUSION_CUDA_SHIM_CUDNN, RTLD_NOW | RTLD_LOCAL) != nullptr);
  if (open) return absl::OkStatus();
  const char* reason = dlerror();
  return absl::NotFoundError(absl::StrCat("no shim driver: ", reason ? reason : ""));
}

}  // namespace fusion
