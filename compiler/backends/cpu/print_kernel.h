// Movement graph → C++ text. Each phase becomes one exported function of the kernel ABI
// (runtime/devices/cpu/kernel_abi.h).
#ifndef FUSION_COMPILER_BACKENDS_CPU_PRINT_KERNEL_H_
#define FUSION_COMPILER_BACKENDS_CPU_PRINT_KERNEL_H_

#include <set>
#include <string>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::cpu {

// Returns `extern "C"` functions `<symbol>_p0`, `<symbol>_p1`, …, one for each phase. The prelude is not part of the
// text, so that many kernels can share one file.
std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device);

}  // namespace fusion::cpu

#endif  // FUSION_COMPILER_BACKENDS_CPU_PRINT_KERNEL_H_
