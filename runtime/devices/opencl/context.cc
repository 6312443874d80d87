#include "runtime/devices/opencl/context.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion::opencl {
namespace {

constexpr size_t kLogBytes = 2000;

// Cuts the driver's text at its terminating zero.
std::string Text(const std::string& bytes) { return bytes.substr(0, bytes.find('\0')); }

template <typename T>
T Number(const Api& api, cl_device_id device, cl_device_info what, T otherwise) {
  T value = otherwise;
  return api.clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : otherwise;
}

std::string DeviceText(const Api& api, cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (api.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string bytes(size, '\0');
  api.clGetDeviceInfo(device, what, size, bytes.data(), nullptr);
  return Text(bytes);
}

DeviceFacts Describe(const Api& api, cl_platform_id platform, cl_device_id id) {
  DeviceFacts facts;
  facts.platform = platform;
  facts.id = id;
  facts.name = DeviceText(api, id, CL_DEVICE_NAME);
  char text[256] = "";
  api.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text - 1, text, nullptr);
  facts.driver = absl::StrCat(text, " ", DeviceText(api, id, CL_DRIVER_VERSION));
  facts.is_cpu = (Number<cl_device_type>(api, id, CL_DEVICE_TYPE, 0) & CL_DEVICE_TYPE_CPU) != 0;
  facts.shares_memory = facts.is_cpu && getenv("FUSION_OPENCL_COPY") == nullptr;
  facts.compute_units = static_cast<int>(Number<cl_uint>(api, id, CL_DEVICE_MAX_COMPUTE_UNITS, 1));
  facts.preferred_lanes = static_cast<int>(Number<cl_uint>(api, id, CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, 1));
  facts.local_bytes = static_cast<int64_t>(Number<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE, 0));
  facts.cache_bytes = static_cast<int64_t>(Number<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 0));
  facts.max_allocation_bytes = static_cast<int64_t>(Number<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0));
  facts.max_group = static_cast<int64_t>(Number<size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1));
  facts.extensions = DeviceText(api, id, CL_DEVICE_EXTENSIONS);
  facts.language = LanguageStandard(DeviceText(api, id, CL_DEVICE_VERSION), facts.extensions);
  // PoCL has one thread per compute unit. These threads take all work-groups of a launch before those of the next, and
  // each runs a work-group to its end. Nothing is known about other drivers, and GPUs need fences that OpenCL C 1.2
  // lacks.
  if (facts.is_cpu && std::string(text).find("Portable Computing Language") == 0) {
    facts.persistent_groups = std::max(1, facts.compute_units);
  }
  return facts;
}

}  // namespace

std::string LanguageStandard(const std::string& version, const std::string& extensions) {
  if (!absl::StrContains(extensions, "cl_khr_subgroups")) return "CL1.2";
  return absl::StartsWith(version, "OpenCL 3.") ? "CL3.0" : absl::StartsWith(version, "OpenCL 2.") ? "CL2.0" : "CL1.2";
}

absl::StatusOr<std::vector<DeviceFacts>> FindDevices() {
  ASSIGN_OR_RETURN(const Api* api, LoadApi());
  cl_platform_id platforms[32];
  cl_uint platform_count = 0;
  if (api->clGetPlatformIDs(32, platforms, &platform_count) != CL_SUCCESS) platform_count = 0;
  std::vector<DeviceFacts> devices;
  for (cl_uint p = 0; p < std::min<cl_uint>(platform_count, 32); ++p) {
    cl_device_id ids[64];
    cl_uint count = 0;
    if (api->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 64, ids, &count) != CL_SUCCESS) continue;
    for (cl_uint d = 0; d < std::min<cl_uint>(count, 64); ++d) devices.push_back(Describe(*api, platforms[p], ids[d]));
  }
  if (devices.empty()) {
    return absl::FailedPreconditionError(
        "OpenCL has no device here: install its driver (pocl-opencl-icd makes one of the processor)");
  }
  std::stable_partition(devices.begin(), devices.end(), [](const DeviceFacts& facts) { return !facts.is_cpu; });
  return devices;
}

absl::StatusOr<std::shared_ptr<Context>> Context::Create() {
  ASSIGN_OR_RETURN(const std::vector<DeviceFacts> devices, FindDevices());
  size_t number = 0;
  if (const char* named = getenv("FUSION_OPENCL_DEVICE"); named != nullptr && *named != '\0') {
    if (!absl::SimpleAtoi(named, &number) || number >= devices.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("FUSION_OPENCL_DEVICE is '", named, "', a number from 0 to ", devices.size() - 1, " is wanted"));
    }
  }
  std::shared_ptr<Context> context(new Context());
  ASSIGN_OR_RETURN(context->api_, LoadApi());
  context->device_ = devices[number];
  const Api& api = *context->api_;
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(context->device_.platform), 0};
  cl_int code = CL_SUCCESS;
  context->context_ = {api.clCreateContext(properties, 1, &context->device_.id, nullptr, nullptr, &code),
                       api.clReleaseContext};
  RETURN_IF_ERROR(ToStatus(code, absl::StrCat("cannot use the OpenCL device '", context->device_.name, "'")));
  context->queue_ = {
      api.clCreateCommandQueue(context->context_.get(), context->device_.id, CL_QUEUE_PROFILING_ENABLE, &code),
      api.clReleaseCommandQueue};
  RETURN_IF_ERROR(ToStatus(code, "cannot make a command queue"));
  return context;
}

absl::Status Context::Build(cl_program program, const std::string& name) const {
  const std::string options = absl::StrCat("-cl-std=", device_.language, " -w");
  const cl_int code = api_->clBuildProgram(program, 1, &device_.id, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return absl::OkStatus();
  size_t size = 0;
  std::string log;
  if (api_->clGetProgramBuildInfo(program, device_.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) == CL_SUCCESS) {
    log.resize(size);
    api_->clGetProgramBuildInfo(program, device_.id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    log = Text(log);
  }
  if (log.size() > kLogBytes) log = absl::StrCat(log.substr(0, kLogBytes), "…");
  return absl::InternalError(absl::StrCat(device_.driver, " does not build '", name, "':\n", log));
}

absl::StatusOr<ClProgram> Context::BuildSource(absl::string_view source, const std::string& name) const {
  const char* text = source.data();
  const size_t size = source.size();
  cl_int code = CL_SUCCESS;
  ClProgram program(api_->clCreateProgramWithSource(context_.get(), 1, &text, &size, &code), api_->clReleaseProgram);
  RETURN_IF_ERROR(ToStatus(code, absl::StrCat("cannot take the text '", name, "'")));
  RETURN_IF_ERROR(Build(program.get(), name));
  return program;
}

absl::StatusOr<ClProgram> Context::BuildBinary(absl::string_view binary, const std::string& name) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int code = CL_SUCCESS, status = CL_SUCCESS;
  ClProgram program(api_->clCreateProgramWithBinary(context_.get(), 1, &device_.id, &size, &bytes, &status, &code),
                    api_->clReleaseProgram);
  if (code != CL_SUCCESS || status != CL_SUCCESS || !Build(program.get(), name).ok()) {
    return absl::FailedPreconditionError(absl::StrCat(device_.driver, " refuses the binary of '", name, "'"));
  }
  return program;
}

absl::StatusOr<std::string> Context::BinaryOf(const ClProgram& program) const {
  size_t size = 0;
  RETURN_IF_ERROR(ToStatus(api_->clGetProgramInfo(program.get(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr),
                           "binary size"));
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  RETURN_IF_ERROR(
      ToStatus(api_->clGetProgramInfo(program.get(), CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr), "binary"));
  return binary;
}

absl::StatusOr<ClKernel> Context::MakeKernel(const ClProgram& program, const std::string& symbol) const {
  cl_int code = CL_SUCCESS;
  ClKernel kernel(api_->clCreateKernel(program.get(), symbol.c_str(), &code), api_->clReleaseKernel);
  RETURN_IF_ERROR(ToStatus(code, absl::StrCat("cannot make the kernel '", symbol, "'")));
  cl_ulong local_bytes = 0;
  const cl_int known = api_->clGetKernelWorkGroupInfo(kernel.get(), device_.id, CL_KERNEL_LOCAL_MEM_SIZE,
                                                      sizeof local_bytes, &local_bytes, nullptr);
  if (known == CL_SUCCESS && static_cast<int64_t>(local_bytes) > device_.local_bytes) {
    return absl::FailedPreconditionError(absl::StrCat("the kernel '", symbol, "' needs ", local_bytes,
                                                      " bytes of local memory, '", device_.name, "' has ",
                                                      device_.local_bytes, ": compile the model for this device"));
  }
  return kernel;
}

absl::StatusOr<Buffer> Context::MakeBuffer(int64_t size_bytes, const char* what, const void* host) const {
  cl_mem_flags flags = CL_MEM_READ_WRITE;
  if (host != nullptr) {
    flags = CL_MEM_READ_ONLY | (device_.shares_memory ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR);
  }
  cl_int code = CL_SUCCESS;
  Buffer buffer(api_->clCreateBuffer(context_.get(), flags, static_cast<size_t>(std::max<int64_t>(1, size_bytes)),
                                     const_cast<void*>(host), &code),
                api_->clReleaseMemObject);
  RETURN_IF_ERROR(
      ToStatus(code, absl::StrCat("no device memory for ", what, " (", size_bytes, " bytes; '", device_.name,
                                  "' gives up to ", device_.max_allocation_bytes, " at once)")));
  return buffer;
}

absl::StatusOr<Buffer> Context::ShareMemory(void* host, int64_t size_bytes) const {
  cl_int code = CL_SUCCESS;
  Buffer buffer(api_->clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                     static_cast<size_t>(size_bytes), host, &code),
                api_->clReleaseMemObject);
  RETURN_IF_ERROR(ToStatus(code, "cannot share memory with the device"));
  return buffer;
}

absl::Status Context::Launch(const ClKernel& kernel, int64_t tasks, cl_event* event) const {
  size_t group[3] = {1, 1, 1};
  RETURN_IF_ERROR(ToStatus(api_->clGetKernelWorkGroupInfo(kernel.get(), device_.id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                                          sizeof group, group, nullptr),
                           "asking for the size of a work-group"));
  group[0] = std::max<size_t>(1, group[0]);
  const size_t global = static_cast<size_t>(tasks) * group[0];
  return ToStatus(
      api_->clEnqueueNDRangeKernel(queue_.get(), kernel.get(), 1, nullptr, &global, group, 0, nullptr, event),
      "launching a kernel");
}

absl::Status Context::Finish() const { return ToStatus(api_->clFinish(queue_.get()), "running the kernels"); }

}  // namespace fusion::opencl
