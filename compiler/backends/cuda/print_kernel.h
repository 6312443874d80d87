// Movement graph → CUDA C++. Each phase becomes one __global__ function; runtime/devices/cuda/kernel_abi.md says how it
// is launched.
#ifndef FUSION_COMPILER_BACKENDS_CUDA_PRINT_KERNEL_H_
#define FUSION_COMPILER_BACKENDS_CUDA_PRINT_KERNEL_H_

#include <string>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::cuda {

// Functions `<symbol>_p0`, `<symbol>_p1`, …, one per phase. A barrier between phases is the boundary between launches.
// A task is a block of the device's `task_lanes` threads, its scratch shared memory; text/work_groups.h says which
// tasks are a thread's.
std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device);

}  // namespace fusion::cuda

#endif  // FUSION_COMPILER_BACKENDS_CUDA_PRINT_KERNEL_H_
