// Movement graph → OpenCL C 1.2. Each phase becomes one kernel function; runtime/devices/opencl/kernel_abi.md says how
// it is launched.
#ifndef FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_
#define FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_

#include <string>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::opencl {

// Functions `<symbol>_p0`, `<symbol>_p1`, …, one per phase. A barrier between phases is the boundary between launches.
// A task is a work-group of the device's `task_lanes` work-items, its scratch local memory. Tasks that are register tiles
// and have no scratch are a work-item each.
std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device);

// Of a launch of the phase.
int64_t WorkGroups(const movement::Kernel& kernel, const movement::Phase& phase, const DeviceModel& device);

}  // namespace fusion::opencl

#endif  // FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_
