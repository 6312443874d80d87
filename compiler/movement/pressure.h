// A kernel's demands on a core besides memory: registers and code. Together with the bound on scratch in the
// schedule, this is the constraint check of DNNFusion Listing 1 ("can cause excessive register spills").
#ifndef FUSION_COMPILER_MOVEMENT_PRESSURE_H_
#define FUSION_COMPILER_MOVEMENT_PRESSURE_H_

#include "absl/status/status.h"
#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

struct Pressure {
  int registers = 0;       // the most values that a step keeps at once, with its accumulators
  double spill_ns = 0;     // stores and loads, in the first-level cache, of values that have no register
  int64_t code_bytes = 0;  // roughly, for the largest step
};

Pressure EstimatePressure(const Kernel& kernel, const DeviceModel& device, int threads);

// Fails with FAILED_PRECONDITION and the reason when spilling would take longer than all else that the kernel does
// (EstimateCost), or when the loop of a step would not stay in the cache.
absl::Status CheckPressure(const Kernel& kernel, const DeviceModel& device, int threads);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_PRESSURE_H_
