#include "compiler/schedule/stitch/task_size.h"

#include <algorithm>

#include "compiler/cost/caches.h"

namespace fusion {
namespace {

constexpr double kMinTaskVectors = 1024, kWorthSharingVectors = 16 * kMinTaskVectors;
constexpr int64_t kWantedTasksPerUnit = 8, kMaxTasksPerUnit = 128;
// Sizes for a device whose model names no cache.
constexpr int64_t kUnknownNearestBytes = 32 << 10, kUnknownPrivateBytes = 1 << 20;

double Lanes(const DeviceModel& device) { return device.vector_bytes / 4.0; }

}  // namespace

int64_t Units(const DeviceModel& device) { return std::max(1, device.parallel_units); }
int64_t LikelyUnits(const DeviceModel& device) { return std::max<int64_t>(2, device.parallel_units); }
double MinTaskCost(const DeviceModel& device) { return kMinTaskVectors * Lanes(device); }
double WorthSharing(const DeviceModel& device) { return kWorthSharingVectors * Lanes(device); }
int64_t WantedTasks(const DeviceModel& device) { return kWantedTasksPerUnit * Units(device); }
int64_t MaxTasks(const DeviceModel& device) { return kMaxTasksPerUnit * Units(device); }

int64_t NearestCacheBytes(const DeviceModel& device) {
  return device.memory.empty() || device.memory[0].size_bytes == 0 ? kUnknownNearestBytes : device.memory[0].size_bytes;
}

int64_t PrivateCacheBytes(const DeviceModel& device) {
  const int64_t largest = LargestPrivateBytes(device);
  return largest > 0 ? largest : kUnknownPrivateBytes;
}

}  // namespace fusion
