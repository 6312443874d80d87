// Movement graph → CUDA C++. Each phase becomes one __global__ function, or all phases of a persistent kernel become
// one; runtime/devices/cuda/kernel_abi.md says how it is launched.
#ifndef FUSION_COMPILER_BACKENDS_CUDA_PRINT_KERNEL_H_
#define FUSION_COMPILER_BACKENDS_CUDA_PRINT_KERNEL_H_

#include <string>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::cuda {

// Returns functions `<symbol>_p0`, `<symbol>_p1`, …, one for each phase; the boundary between launches is the barrier
// between phases. A persistent kernel has `<symbol>_p0` alone, and a phase that a library computes has no function. A
// task is a thread block of the device's `work_group_size` threads, and its scratch is shared memory;
// movement/work_groups.h says which tasks belong to a single thread.
std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device);

}  // namespace fusion::cuda

#endif  // FUSION_COMPILER_BACKENDS_CUDA_PRINT_KERNEL_H_
