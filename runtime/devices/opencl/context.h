// Context: one OpenCL device with an in-order queue. What the bundle's device, the worker's probe and the toolchain
// share.
#ifndef FUSION_RUNTIME_DEVICES_OPENCL_CONTEXT_H_
#define FUSION_RUNTIME_DEVICES_OPENCL_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/devices/opencl/api.h"

namespace fusion::opencl {

// What the driver says of a device.
struct DeviceFacts {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string name;    // "pthread-Intel(R) Xeon(R)"
  std::string driver;  // "Portable Computing Language 3.1": platform and version of the driver
  bool is_cpu = false;
  bool shares_memory = false;  // works in the host's memory: processors, unless the variable FUSION_OPENCL_COPY is set
  int compute_units = 1;
  int preferred_lanes = 1;  // floats of a vector
  int64_t local_bytes = 0;
  int64_t cache_bytes = 0;  // of global memory; 0: none
  int64_t max_allocation_bytes = 0;
  int64_t max_group = 1;
  // Groups of one launch that run at the same time and see what the others stored, so that they may wait for each
  // other.
  int resident_groups = 1;
  std::string extensions;
  std::string language = "CL1.2";  // that text is built as
};

// The language for a device with CL_DEVICE_VERSION and extensions: OpenCL C 1.2, but where subgroups are, which are
// part of later ones.
std::string LanguageStandard(const std::string& version, const std::string& extensions);

// Every device of every platform, GPUs and accelerators before processors, otherwise as the loader lists them.
// FAILED_PRECONDITION where there is none.
absl::StatusOr<std::vector<DeviceFacts>> FindDevices();

// Releases an object of OpenCL.
template <typename T>
class Owned {
 public:
  using Release = cl_int(CL_API_CALL*)(T);
  Owned() = default;
  Owned(T object, Release release) : object_(object), release_(release) {}
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (object_ != nullptr) release_(object_);
  }
  T get() const { return object_; }

 private:
  T object_ = nullptr;
  Release release_ = nullptr;
};

using Buffer = Owned<cl_mem>;
using Program = Owned<cl_program>;
using Kernel = Owned<cl_kernel>;

// Any thread; commands of several threads mix in the queue. Outlives what it makes.
class Context {
 public:
  // The first of FindDevices(), or that with the number which the variable FUSION_OPENCL_DEVICE names.
  static absl::StatusOr<std::shared_ptr<Context>> Create();

  const Api& api() const { return *api_; }
  const DeviceFacts& device() const { return device_; }
  cl_command_queue queue() const { return queue_.get(); }

  // INTERNAL with the first lines of the compiler's log.
  absl::StatusOr<Program> BuildSource(absl::string_view source, const std::string& name) const;
  // FAILED_PRECONDITION where the driver refuses it. `binary` is trusted: a damaged one may end the process.
  absl::StatusOr<Program> BuildBinary(absl::string_view binary, const std::string& name) const;
  absl::StatusOr<std::string> BinaryOf(const Program& program) const;
  // FAILED_PRECONDITION where the kernel wants more local memory than there is.
  absl::StatusOr<Kernel> MakeKernel(const Program& program, const std::string& symbol) const;
  // At least one byte. With `host`: the device's copy of those bytes, or themselves where it shares memory; then they
  // must outlive it.
  absl::StatusOr<Buffer> MakeBuffer(int64_t size_bytes, const char* what, const void* host = nullptr) const;
  // The `size_bytes` at `host` themselves, read and written; of a device that shares memory.
  absl::StatusOr<Buffer> ShareMemory(void* host, int64_t size_bytes) const;
  // Enqueues `tasks` > 0 work-groups of the size that the kernel requires. `event` may be null; else the caller
  // releases it.
  absl::Status Launch(const Kernel& kernel, int64_t tasks, cl_event* event) const;
  absl::Status Finish() const;

 private:
  Context() = default;
  absl::Status Build(cl_program program, const std::string& name) const;

  const Api* api_ = nullptr;
  DeviceFacts device_;
  Owned<cl_context> context_;
  Owned<cl_command_queue> queue_;
};

}  // namespace fusion::opencl

#endif  // FUSION_RUNTIME_DEVICES_OPENCL_CONTEXT_H_
