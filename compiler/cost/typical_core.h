// The core that tools plan for when no device is given: rates and caches of one typical core. Plans for it differ only
// with the instruction set, and are the same on every machine.
#ifndef FUSION_COMPILER_COST_TYPICAL_CORE_H_
#define FUSION_COMPILER_COST_TYPICAL_CORE_H_

#include "compiler/cost/device_model.h"

namespace fusion {

// With AVX-512.
inline DeviceModel TypicalCore() {
  DeviceModel device;
  device.memory = {{"L1", 48 << 10, 2.2e11, false},
                   {"L2", 1 << 20, 7e10, false},
                   {"L3", 32 << 20, 2.4e10, true},
                   {"DRAM", 0, 1e10, true}};
  return device;
}

// With the instructions of a CPU, so that the CPU can run what is built for it.
inline DeviceModel TypicalCoreLike(const DeviceModel& cpu) {
  DeviceModel device = TypicalCore();
  device.isa = cpu.isa;
  device.march = cpu.march;
  device.vector_bytes = cpu.vector_bytes;
  device.vector_registers = cpu.vector_registers;
  device.byte_dots = cpu.byte_dots;
  return device;
}

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_TYPICAL_CORE_H_
