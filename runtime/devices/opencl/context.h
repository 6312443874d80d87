// Context: one OpenCL device with an in-order queue. The runtime's device, the worker's probe and the toolchain share
// it.
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

// The driver's description of a device.
struct DeviceFacts {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string name;    // "pthread-Intel(R) Xeon(R)"
  std::string driver;  // "Portable Computing Language 3.1": platform and version of the driver
  bool is_cpu = false;
  bool shares_memory = false;  // it works in the host's memory: CPUs do, unless the variable FUSION_OPENCL_COPY is set
  int compute_units = 1;
  int preferred_lanes = 1;  // floats of a vector
  int64_t local_bytes = 0;
  int64_t cache_bytes = 0;  // cache of global memory; 0: none
  int64_t max_allocation_bytes = 0;
  int64_t max_group = 1;
  // Number of work-groups of one launch that run at the same time and see what the others stored, so that they may wait
  // for each other.
  int persistent_groups = 1;
  std::string extensions;
  std::string language = "CL1.2";  // the language standard for building its kernels
};

// Returns the language standard for a device with this CL_DEVICE_VERSION and these extensions: OpenCL C 1.2, or a later
// one if the device has subgroups, which only later standards contain.
std::string LanguageStandard(const std::string& version, const std::string& extensions);

// Returns every device of every platform: GPUs and accelerators before CPUs, otherwise in the loader's order. Fails
// with FAILED_PRECONDITION if there is none.
absl::StatusOr<std::vector<DeviceFacts>> FindDevices();

// Owns an object of OpenCL and releases it.
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
using ClProgram = Owned<cl_program>;
using ClKernel = Owned<cl_kernel>;

// Any thread may call; commands of several threads mix in the queue. The context must outlive the objects that it
// makes.
class Context {
 public:
  // Uses the first of FindDevices(), or the one whose number the variable FUSION_OPENCL_DEVICE holds.
  static absl::StatusOr<std::shared_ptr<Context>> Create();

  const Api& api() const { return *api_; }
  const DeviceFacts& device() const { return device_; }
  cl_command_queue queue() const { return queue_.get(); }

  // Fails with INTERNAL and the first lines of the compiler's log.
  absl::StatusOr<ClProgram> BuildSource(absl::string_view source, const std::string& name) const;
  // Fails with FAILED_PRECONDITION if the driver refuses the binary. `binary` must be trusted: a damaged one may end
  // the process.
  absl::StatusOr<ClProgram> BuildBinary(absl::string_view binary, const std::string& name) const;
  absl::StatusOr<std::string> BinaryOf(const ClProgram& program) const;
  // Fails with FAILED_PRECONDITION if the kernel needs more local memory than the device has.
  absl::StatusOr<ClKernel> MakeKernel(const ClProgram& program, const std::string& symbol) const;
  // The buffer has at least one byte. With `host` it holds a copy of those bytes; on a device that shares memory it is
  // those bytes, which must then outlive it.
  absl::StatusOr<Buffer> MakeBuffer(int64_t size_bytes, const char* what, const void* host = nullptr) const;
  // The buffer is the `size_bytes` at `host` themselves, read and written. Only for a device that shares memory.
  absl::StatusOr<Buffer> ShareMemory(void* host, int64_t size_bytes) const;
  // Enqueues `tasks` > 0 work-groups of the size that the kernel requires. `event` may be null; otherwise the caller
  // releases the event.
  absl::Status Launch(const ClKernel& kernel, int64_t tasks, cl_event* event) const;
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
