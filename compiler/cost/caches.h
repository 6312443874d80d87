// Questions about the memory levels of a device model.
#ifndef FUSION_COMPILER_COST_CACHES_H_
#define FUSION_COMPILER_COST_CACHES_H_

#include <algorithm>
#include <cstdint>

#include "compiler/cost/device_model.h"

namespace fusion {

// Size in bytes of the largest memory that is private to a core; 0 where the model names none.
inline int64_t LargestPrivateBytes(const DeviceModel& device) {
  int64_t largest = 0;
  for (const MemoryLevel& level : device.memory) {
    if (!level.shared) largest = std::max(largest, level.size_bytes);
  }
  return largest;
}

// Size in bytes of the largest cache, shared or private; 0 where the model names none. The last level is main memory,
// which does not count.
inline int64_t LargestCacheBytes(const DeviceModel& device) {
  int64_t largest = 0;
  for (size_t l = 0; l + 1 < device.memory.size(); ++l) largest = std::max(largest, device.memory[l].size_bytes);
  return largest;
}

// Does a tensor of this size leave a core's own cache before its reader comes to it? Data that fills more than ¾ of a
// cache is served by the next level. False where the model names no private memory.
inline bool LeavesPrivateCache(double bytes, const DeviceModel& device) {
  constexpr double kServedShare = 0.75;
  const int64_t cache = LargestPrivateBytes(device);
  return cache > 0 && bytes > kServedShare * static_cast<double>(cache);
}

// Is a result of this size better written past the caches? A smaller one stays in the largest cache for its reader,
// beside the other data that lives there.
inline bool FillsCaches(double bytes, const DeviceModel& device) {
  constexpr double kCacheShare = 0.25;
  return bytes >= kCacheShare * static_cast<double>(LargestCacheBytes(device));
}

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_CACHES_H_
