// The devices that the tools plan for when none is given. Their rates are those of one typical core, so plans differ
// only with the instruction set.
#ifndef FUSION_COMPILER_TOOLS_OFFLINE_DEVICE_H_
#define FUSION_COMPILER_TOOLS_OFFLINE_DEVICE_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/cost/typical_core.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/isa.h"

namespace fusion {

// A core with AVX-512, whatever the machine, so that output is the same everywhere.
inline DeviceModel OfflineDevice() { return TypicalCore(); }

// The same core with this machine's instruction set, so that this machine can run what is built for it.
inline absl::StatusOr<DeviceModel> OfflineHostDevice() {
  ASSIGN_OR_RETURN(const InstructionSet set, HostInstructionSet());
  DeviceModel device = OfflineDevice();
  device.isa = set.isa;
  device.march = set.march;
  device.vector_bytes = set.vector_bytes;
  device.vector_registers = set.vector_registers;
  return device;
}

// Fits any OpenCL device: eight lanes, one work-item a task, and the local memory that the standard guarantees.
inline DeviceModel OfflineOpenClDevice() {
  DeviceModel device;
  device.kind = "opencl";
  device.isa = "opencl1.2";
  device.march = "float8x1";
  device.vector_bytes = 32;
  device.vector_registers = 16;
  device.byte_dots = false;
  device.launch_s = 2e-5;
  device.memory = {{"local", 32 << 10, 2e11, false}, {"L2", 1 << 20, 7e10, true}, {"global", 0, 1e10, true}};
  return device;
}

}  // namespace fusion

#endif  // FUSION_COMPILER_TOOLS_OFFLINE_DEVICE_H_
