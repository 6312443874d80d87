#include "compiler/backends/cpu/instructions.h"

#include <algorithm>

namespace fusion::cpu {

Instructions InstructionsOf(const movement::Kernel& kernel, const DeviceModel& device) {
  Instructions all{device.isa, device.march};
  if (all.isa != "avx512vnni") return all;
  for (const movement::Phase& phase : kernel.phases) {
    const bool dot = std::any_of(phase.steps.begin(), phase.steps.end(),
                                 [](const movement::Step& step) { return step.tile.dot_axis >= 0; });
    if (dot) return all;
  }
  return {"avx512", all.march.substr(0, all.march.find('+'))};
}

}  // namespace fusion::cpu
