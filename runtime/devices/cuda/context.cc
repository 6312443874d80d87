#include "runtime/devices/cuda/context.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace fusion::cuda {

std::string DeviceFacts::architecture() const { return absl::StrCat("sm_", major, minor); }

absl::StatusOr<std::vector<DeviceFacts>> FindDevices() {
  ASSIGN_OR_RETURN(const Api* api, LoadApi());
  int count = 0;
  RETURN_IF_ERROR(ToStatus(*api, api->DeviceGetCount(&count), "counting CUDA devices"));
  if (count == 0) return absl::FailedPreconditionError("the CUDA driver of this machine knows no device");
  std::vector<DeviceFacts> devices;
  for (int d = 0; d < count; ++d) {
    DeviceFacts facts;
    char name[256] = "";
    RETURN_IF_ERROR(ToStatus(*api, api->DeviceGet(&facts.number, d), "finding a CUDA device"));
    RETURN_IF_ERROR(ToStatus(*api, api->DeviceGetName(name, sizeof name - 1, facts.number), "a device's name"));
    for (const auto& [attribute, value] :
         {std::pair(kComputeMajor, &facts.major), std::pair(kComputeMinor, &facts.minor),
          std::pair(kMultiprocessors, &facts.multiprocessors), std::pair(kClockKhz, &facts.clock_khz),
          std::pair(kMemoryClockKhz, &facts.memory_clock_khz), std::pair(kMemoryBusBits, &facts.memory_bus_bits),
          std::pair(kL2Bytes, &facts.l2_bytes), std::pair(kCooperativeLaunch, &facts.cooperates),
          std::pair(kUnitRegisters, &facts.unit_registers), std::pair(kUnitSharedBytes, &facts.unit_shared_bytes),
          std::pair(kUnitThreads, &facts.unit_threads), std::pair(kUnitBlocks, &facts.unit_blocks),
          std::pair(kReservedSharedBytes, &facts.reserved_shared_bytes)}) {
      RETURN_IF_ERROR(ToStatus(*api, api->DeviceGetAttribute(value, attribute, facts.number), "a device's properties"));
    }
    facts.name = name;
    RETURN_IF_ERROR(ToStatus(*api, api->DriverGetVersion(&facts.driver), "the driver's version"));
    devices.push_back(std::move(facts));
  }
  return devices;
}

absl::StatusOr<DeviceFacts> ChosenDevice() {
  ASSIGN_OR_RETURN(std::vector<DeviceFacts> devices, FindDevices());
  size_t number = 0;
  if (const char* named = getenv("FUSION_CUDA_DEVICE"); named != nullptr && *named != 0) {
    if (!absl::SimpleAtoi(named, &number) || number >= devices.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("FUSION_CUDA_DEVICE is '", named, "', a number from 0 to ", devices.size() - 1, " is wanted"));
    }
  }
  return devices[number];
}

absl::Status CheckRuns(const DeviceFacts& device, const std::string& architecture) {
  absl::string_view digits = architecture;
  int number = 0;
  if (!absl::ConsumePrefix(&digits, "sm_") || !absl::SimpleAtoi(digits, &number) || number < 10) {
    return absl::InvalidArgumentError(absl::StrCat("'", architecture, "' is no architecture of CUDA"));
  }
  if (number / 10 == device.major && number % 10 <= device.minor) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the bundle is for cuda:", architecture, ", '", device.name,
                                                    "' is ", device.architecture(),
                                                    ": compile the model for cuda:", device.architecture()));
}

namespace {

// The driver destroys a device's primary context with its last user, and takes a third of a second to make another. So
// a process that had one keeps it.
void KeepPrimaryContext(const Api& api, DeviceNumber device) {
  static std::mutex mutex;
  static auto* const kept = new std::set<DeviceNumber>();
  const std::lock_guard<std::mutex> lock(mutex);
  ContextHandle unused = nullptr;
  if (kept->insert(device).second) api.PrimaryCtxRetain(&unused, device);
}

}  // namespace

Current::Current(const Context& context) : api_(context.api()) { api_.CtxPushCurrent(context.handle()); }

Current::~Current() {
  ContextHandle popped;
  api_.CtxPopCurrent(&popped);
}

Memory::~Memory() {
  if (data_ == 0) return;
  const Current current(*context_);
  context_->api().MemFree(data_);
}

absl::StatusOr<std::shared_ptr<Context>> Context::Create() {
  std::shared_ptr<Context> context(new Context());
  ASSIGN_OR_RETURN(context->api_, LoadApi());
  ASSIGN_OR_RETURN(context->device_, ChosenDevice());
  const Api& api = *context->api_;
  RETURN_IF_ERROR(ToStatus(api, api.PrimaryCtxRetain(&context->handle_, context->device_.number),
                           absl::StrCat("cannot use the CUDA device '", context->device_.name, "'")));
  KeepPrimaryContext(api, context->device_.number);
  const Current current(*context);
  RETURN_IF_ERROR(context->Check(api.StreamCreate(&context->stream_, kStreamNonBlocking), "cannot make a stream"));
  return context;
}

Context::~Context() {
  if (stream_ != nullptr) {
    const Current current(*this);
    api_->StreamDestroy(stream_);
  }
  if (handle_ != nullptr) api_->PrimaryCtxRelease(device_.number);
}

absl::StatusOr<Memory> Context::Allocate(int64_t size_bytes, const char* what) const {
  DevicePointer data = 0;
  RETURN_IF_ERROR(Check(api_->MemAlloc(&data, static_cast<size_t>(std::max<int64_t>(1, size_bytes))),
                        absl::StrCat("no device memory for ", what, " (", size_bytes, " bytes)")));
  return Memory(shared_from_this(), data);
}

absl::StatusOr<int> Context::BlocksTogether(FunctionHandle function, int block_threads) const {
  if (device_.cooperates == 0) return 1;
  int each = 0;
  RETURN_IF_ERROR(Check(api_->OccupancyMaxActiveBlocksPerMultiprocessor(&each, function, block_threads, 0),
                        "asking how many thread blocks a multiprocessor runs"));
  return std::max(1, each * device_.multiprocessors);
}

}  // namespace fusion::cuda
