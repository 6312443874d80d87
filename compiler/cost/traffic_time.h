// The time that handing a value over through memory takes. Planners compare it with what fusing saves.
#ifndef FUSION_COMPILER_COST_TRAFFIC_TIME_H_
#define FUSION_COMPILER_COST_TRAFFIC_TIME_H_

#include "compiler/cost/device_model.h"

namespace fusion {

// Nanoseconds to write and read this many bytes once, by one core, at the rate of the nearest memory that holds them.
inline double HandOverNs(const DeviceModel& device, double bytes) {
  return bytes > 0 ? 1e9 * bytes / device.CopyBandwidth(bytes) : 0;
}

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_TRAFFIC_TIME_H_
