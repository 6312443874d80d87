// Which of a device's vector instructions a kernel needs: what runs without an extension is built without it, so that
// its bundle loads on processors that lack the extension.
#ifndef FUSION_COMPILER_BACKENDS_CPU_INSTRUCTIONS_H_
#define FUSION_COMPILER_BACKENDS_CPU_INSTRUCTIONS_H_

#include <string>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion::cpu {

struct Instructions {
  std::string isa, march;  // as in DeviceModel
  bool operator==(const Instructions&) const = default;
};

// Those of the device, less the extension for products of bytes where the kernel has none.
Instructions InstructionsOf(const movement::Kernel& kernel, const DeviceModel& device);

}  // namespace fusion::cpu

#endif  // FUSION_COMPILER_BACKENDS_CPU_INSTRUCTIONS_H_
