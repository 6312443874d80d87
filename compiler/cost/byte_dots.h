// Products of bytes on a device.
#ifndef FUSION_COMPILER_COST_BYTE_DOTS_H_
#define FUSION_COMPILER_COST_BYTE_DOTS_H_

#include "absl/strings/match.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// Has the device an instruction that adds four products of bytes in each lane (vpdpbusd)? Otherwise bytes are widened
// to 16 bits, two products are added at once (vpmaddwd), and four take about three times as long as one FMA.
inline bool HasByteDots(const DeviceModel& device) { return device.byte_dots && absl::EndsWith(device.isa, "vnni"); }
inline constexpr double kWidenedDotOps = 3;

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_BYTE_DOTS_H_
