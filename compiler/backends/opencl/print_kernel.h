// Movement graph → OpenCL C 1.2. Each phase becomes one kernel function; runtime/devices/opencl/kernel_abi.md says how
// it is launched.
#ifndef FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_
#define FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_

#include <string>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::opencl {

// Functions `<symbol>_p0`, `<symbol>_p1`, …, one per phase. A barrier between phases is the boundary between launches.
// A task is a work-group of the device's `task_lanes` work-items, its scratch local memory;
// text/work_groups.h says which tasks are a work-item's.
std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device);

}  // namespace fusion::opencl

#endif  // FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_
