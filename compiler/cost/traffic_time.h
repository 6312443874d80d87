// The time that handing a value over through memory takes. Planners compare it with what fusing saves.
#ifndef FUSION_COMPILER_COST_TRAFFIC_TIME_H_
#define FUSION_COMPILER_COST_TRAFFIC_TIME_H_

#include <algorithm>

#include "compiler/cost/device_model.h"

namespace fusion {

// How many units' rates of memory add up where so many work at once. One core of a processor uses most of what all
// could; a unit of a device of work-groups has its share alone.
inline double MemoryUnits(const DeviceModel& device, double working) {
  return device.WorkItemsAreLanes() ? std::clamp<double>(working, 1, std::max(1, device.parallel_units)) : 1;
}

// Nanoseconds to write and read this many bytes once, by one core or all units, at the rate of the nearest memory that
// holds them.
inline double HandOverNs(const DeviceModel& device, double bytes) {
  return bytes > 0 ? 1e9 * bytes / device.CopyBandwidth(bytes) / MemoryUnits(device, device.parallel_units) : 0;
}

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_TRAFFIC_TIME_H_
