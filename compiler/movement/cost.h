// The performance model: reads a movement graph and a device model, nothing else (PowerFusion §5.2, FusionStitching Eq.
// 1). Per phase, the larger of arithmetic time and the time of the slowest memory level, in waves over the parallel
// units, plus barriers and the launch. Caches are not scopes: an access is served by the smallest level of which the
// bytes between two of its uses fill at most three quarters; a store to a line not yet cached counts twice.
#ifndef FUSION_COMPILER_MOVEMENT_COST_H_
#define FUSION_COMPILER_MOVEMENT_COST_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

struct KernelCost {
  double fma = 0;               // FMA-equivalents, all tasks
  double special = 0;           // of which beyond plain arithmetic
  double compulsory_bytes = 0;  // each kernel-scope buffer element touched once (stores twice where allocated on write)
  double latency_ns = 0;
};

KernelCost EstimateCost(const Kernel& kernel, const DeviceModel& device, int threads);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_COST_H_
