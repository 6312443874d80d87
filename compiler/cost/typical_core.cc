#include "compiler/cost/typical_core.h"

#include <algorithm>
#include <cstddef>

namespace fusion {

DeviceModel TypicalCore() {
  DeviceModel device;
  device.memory = {{"L1", 48 << 10, 2.2e11, false},
                   {"L2", 1 << 20, 7e10, false},
                   {"L3", 32 << 20, 2.4e10, true},
                   {"DRAM", 0, 1e10, true}};
  return device;
}

DeviceModel TypicalCoreLike(const DeviceModel& cpu) {
  DeviceModel device = TypicalCore();
  device.isa = cpu.isa;
  device.march = cpu.march;
  device.vector_bytes = cpu.vector_bytes;
  device.vector_registers = cpu.vector_registers;
  device.byte_dots = cpu.byte_dots;
  return device;
}

DeviceModel WithTypicalRates(const DeviceModel& device) {
  if (device.kind == "cpu") {
    const DeviceModel core = TypicalCore();
    DeviceModel typical = device.WithRatesOf(core);
    for (size_t i = 0; i < device.memory.size(); ++i) {
      const size_t cache = std::min(i, core.memory.size() - 2);
      const MemoryLevel& like = device.memory[i].size_bytes == 0 ? core.memory.back() : core.memory[cache];
      typical.memory[i].bandwidth_bytes_per_s = like.bandwidth_bytes_per_s;
    }
    return typical;
  }
  constexpr double kCyclesPerSecond = 2.5e9, kNearestBytesPerCycle = 80, kSlowerByLevel = 3, kMatrixSpeedup = 8;
  DeviceModel typical = device.WithRatesOf(DeviceModel());
  typical.fma_f32_flops_per_s = kCyclesPerSecond * 2 * 2 * device.vector_bytes / 4;  // two units, two operations a lane
  for (MatrixProduct& product : typical.matrix_products) {
    product.flops_per_s = kMatrixSpeedup * typical.fma_f32_flops_per_s;
  }
  double bytes_per_cycle = kNearestBytesPerCycle;
  for (MemoryLevel& level : typical.memory) {
    level.bandwidth_bytes_per_s = kCyclesPerSecond * bytes_per_cycle;
    bytes_per_cycle /= kSlowerByLevel;
  }
  return typical;
}

}  // namespace fusion
