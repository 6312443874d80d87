// Movement graph → OpenCL C 1.2. Each phase becomes one kernel function, or all phases of a persistent kernel become
// one; runtime/devices/opencl/kernel_abi.md says how it is launched.
#ifndef FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_
#define FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_

#include <string>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::opencl {

// Returns functions `<symbol>_p0`, `<symbol>_p1`, …, one for each phase; the boundary between launches is the barrier
// between phases. A persistent kernel has `<symbol>_p0` alone. A task is a work-group of the device's `work_group_size`
// work-items, and its scratch is local memory; movement/work_groups.h says which tasks belong to a single work-item.
std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device);

}  // namespace fusion::opencl

#endif  // FUSION_COMPILER_BACKENDS_OPENCL_PRINT_KERNEL_H_
