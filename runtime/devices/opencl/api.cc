#include "runtime/devices/opencl/api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace fusion::opencl {
namespace {

absl::StatusOr<const Api*> Open() {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        "no OpenCL here: install a loader (Debian: ocl-icd-libopencl1) and the driver of the device "
        "(pocl-opencl-icd for the processor)");
  }
  static Api api;
  const char* missing = nullptr;
#define FUSION_OPENCL_RESOLVE(name)                                       \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name)); \
  if (api.name == nullptr) missing = #name;
  FUSION_OPENCL_FUNCTIONS(FUSION_OPENCL_RESOLVE)
#undef FUSION_OPENCL_RESOLVE
  if (missing != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("libOpenCL.so.1 has no ", missing, ": OpenCL 1.2 is needed"));
  }
  return &api;
}

std::string CodeName(cl_int code) {
  switch (code) {
    case CL_DEVICE_NOT_FOUND:
      return "CL_DEVICE_NOT_FOUND";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES:
      return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY:
      return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE:
      return "CL_BUILD_PROGRAM_FAILURE";
    case CL_INVALID_BUFFER_SIZE:
      return "CL_INVALID_BUFFER_SIZE";
    case CL_INVALID_KERNEL_NAME:
      return "CL_INVALID_KERNEL_NAME";
    case CL_INVALID_KERNEL_ARGS:
      return "CL_INVALID_KERNEL_ARGS";
    case CL_INVALID_WORK_GROUP_SIZE:
      return "CL_INVALID_WORK_GROUP_SIZE";
    default:
      return absl::StrCat("OpenCL error ", code);
  }
}

}  // namespace

absl::StatusOr<const Api*> LoadApi() {
  static const absl::StatusOr<const Api*> api = Open();
  return api;
}

absl::Status ToStatus(cl_int code, const std::string& what) {
  if (code == CL_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", CodeName(code));
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  return memory ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

}  // namespace fusion::opencl
