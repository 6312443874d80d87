// What a kernel asks of a core besides memory: registers and code. With the scratch that the schedule bounds, this is
// the constraint check of DNNFusion Listing 1 ("can cause excessive register spills").
#ifndef FUSION_COMPILER_MOVEMENT_PRESSURE_H_
#define FUSION_COMPILER_MOVEMENT_PRESSURE_H_

#include "absl/status/status.h"
#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

struct Pressure {
  int registers = 0;       // values that the greediest step keeps at once, its accumulators among them
  double spill_ns = 0;     // stores and loads, in the first-level cache, of what the device's registers do not hold
  int64_t code_bytes = 0;  // of the largest step, roughly
};

Pressure EstimatePressure(const Kernel& kernel, const DeviceModel& device, int threads);

// FAILED_PRECONDITION with the reason when spilling would take as long as all else that the kernel does (EstimateCost),
// or when the loop of a step would not stay in the cache.
absl::Status CheckPressure(const Kernel& kernel, const DeviceModel& device, int threads);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_PRESSURE_H_
