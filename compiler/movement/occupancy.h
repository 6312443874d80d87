// The part of a multiprocessor that a kernel's work-groups take: an estimate of what CUDA's compiler allots, so that
// planners know it before anything is built.
#ifndef FUSION_COMPILER_MOVEMENT_OCCUPANCY_H_
#define FUSION_COMPILER_MOVEMENT_OCCUPANCY_H_

#include <optional>

#include "absl/types/span.h"
#include "compiler/cost/device_model.h"
#include "compiler/cost/occupancy.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// The demand of a work-group that runs these phases of the kernel in one function. Registers are estimated: for nine in
// ten threadgroup tiles within a fifth of what NVRTC allocates, for half of the other kernels, few of which are short of
// registers (docs/benchmarks/2026-11-cuda-resources.md). Shared memory is exact but for the few bytes through which more than a warp reduces a row.
GroupDemand DemandOf(const Kernel& kernel, absl::Span<const Phase> phases, const DeviceModel& device);

// Occupancy of the launch that has least, nothing on a device without occupancy or where all phases are library calls.
std::optional<Occupancy> EstimateOccupancy(const Kernel& kernel, const DeviceModel& device);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_OCCUPANCY_H_
