// One GPU with its stream. Whatever it returns must not outlive it and belongs to one thread at a time.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_CONTEXT_H_
#define FUSION_RUNTIME_DEVICES_CUDA_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/devices/cuda/api.h"

namespace fusion::cuda {

struct DeviceFacts {
  DeviceNumber number = 0;
  std::string name;
  int driver = 0;            // the newest CUDA version that it knows, 1000 * major + 10 * minor
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0, l2_bytes = 0;
  int unit_registers = 0, unit_shared_bytes = 0, unit_threads = 0, unit_blocks = 0;  // of a multiprocessor
  int reserved_shared_bytes = 0;  // that the driver takes for each thread block
  int cooperates = 0;  // nonzero: it runs all thread blocks of a cooperative launch at the same time

  std::string architecture() const;  // "sm_90"
};

// Returns at least one device, in the driver's order. Fails with FAILED_PRECONDITION without a driver or a device.
absl::StatusOr<std::vector<DeviceFacts>> FindDevices();
// Returns the first device, or the one whose number FUSION_CUDA_DEVICE holds.
absl::StatusOr<DeviceFacts> ChosenDevice();
// Checks that machine code of `architecture` runs on the device: its major version must be the device's, its minor
// version at most the device's. Fails with FAILED_PRECONDITION and the target that the device needs, INVALID_ARGUMENT
// if `architecture` is none.
absl::Status CheckRuns(const DeviceFacts& device, const std::string& architecture);

class Context;

// Makes the context current on this thread while it lives. Every thread that calls the driver needs it.
class Current {
 public:
  explicit Current(const Context& context);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Api& api_;
};

// Device memory; the destructor frees it.
class Memory {
 public:
  Memory() = default;
  Memory(std::shared_ptr<const Context> context, DevicePointer data) : context_(std::move(context)), data_(data) {}
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Memory();
  DevicePointer data() const { return data_; }

 private:
  std::shared_ptr<const Context> context_;
  DevicePointer data_ = 0;
};

class Context : public std::enable_shared_from_this<Context> {
 public:
  static absl::StatusOr<std::shared_ptr<Context>> Create();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceFacts& device() const { return device_; }
  const Api& api() const { return *api_; }
  StreamHandle stream() const { return stream_; }
  ContextHandle handle() const { return handle_; }

  // The context must be current for all of these.
  absl::Status Check(Result code, const std::string& what) const { return ToStatus(*api_, code, what); }
  // Fails with RESOURCE_EXHAUSTED and names `what`.
  absl::StatusOr<Memory> Allocate(int64_t size_bytes, const char* what) const;
  // Returns how many thread blocks of one launch of the function the device runs at the same time, at least 1. Such
  // thread blocks may wait for each other.
  absl::StatusOr<int> BlocksTogether(FunctionHandle function, int block_threads) const;
  absl::Status Finish() const { return Check(api_->StreamSynchronize(stream_), "running the kernels"); }

 private:
  Context() = default;
  const Api* api_ = nullptr;
  DeviceFacts device_;
  ContextHandle handle_ = nullptr;
  StreamHandle stream_ = nullptr;
};

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_CONTEXT_H_
