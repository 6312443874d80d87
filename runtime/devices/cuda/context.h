// One GPU with its stream. What it hands out ends with it at the latest, and belongs to one thread at a time.
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
  int driver = 0;            // the newest CUDA that it knows, 1000 * major + 10 * minor
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0, l2_bytes = 0;
  int cooperates = 0;  // not 0: it runs the blocks of a cooperative launch at the same time

  std::string architecture() const;  // "sm_90"
};

// In the driver's order, at least one. FAILED_PRECONDITION without a driver or a device.
absl::StatusOr<std::vector<DeviceFacts>> FindDevices();
// The first, or the one that FUSION_CUDA_DEVICE names by its number.
absl::StatusOr<DeviceFacts> ChosenDevice();
// Machine code of an architecture runs on devices of the same major version and an equal or a higher minor one.
// FAILED_PRECONDITION that says which target the device wants; INVALID_ARGUMENT for what is no architecture.
absl::Status CheckRuns(const DeviceFacts& device, const std::string& architecture);

class Context;

// Calls the driver with the context current, which it must be on every thread.
class Current {
 public:
  explicit Current(const Context& context);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Api& api_;
};

// Memory of the device, freed on destruction.
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

  // All of these with the context current.
  absl::Status Check(Result code, const std::string& what) const { return ToStatus(*api_, code, what); }
  // RESOURCE_EXHAUSTED naming `what`.
  absl::StatusOr<Memory> Allocate(int64_t size_bytes, const char* what) const;
  // Blocks of one launch of the function that the device runs at the same time, so that they may wait for each other;
  // at least 1.
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
