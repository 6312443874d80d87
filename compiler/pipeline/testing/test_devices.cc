#include "absl/strings/str_cat.h"
#include "compiler/cost/typical_core.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/pipeline/testing/subgroup_suffix.h"

namespace fusion::testing {

DeviceModel Avx512Device() { return TypicalCore(); }

DeviceModel Avx2Device() {
  DeviceModel device = Avx512Device();
  device.isa = "avx2";
  device.march = "x86-64-v3";
  device.vector_bytes = 32;
  device.vector_registers = 16;
  return device;
}

DeviceModel VnniDevice() {
  DeviceModel device = Avx512Device();
  device.isa = "avx512vnni";
  device.march = "x86-64-v4+avx512vnni";
  return device;
}

DeviceModel NeonDevice() {
  DeviceModel device = Avx512Device();
  device.isa = "neon";
  device.march = "armv8.2-a";
  device.vector_bytes = 16;
  device.vector_registers = 32;
  return device;
}

DeviceModel OpenClTestDevice(int lanes, int work_group_size) {
  DeviceModel device = Avx512Device();
  device.kind = device.isa = "opencl";
  device.march = absl::StrCat("float", lanes, "x", work_group_size);
  device.vector_bytes = 4 * lanes;
  device.work_group_size = work_group_size;
  device.byte_dots = false;
  device.memory = {{"local", 32 << 10, 2e11, false}, {"L2", 1 << 20, 7e10, true}, {"global", 0, 1e10, true}};
  return device;
}

DeviceModel SubgroupTestDevice(int lanes, int work_group_size) {
  DeviceModel device = OpenClTestDevice(lanes, work_group_size);
  device.march += kSubgroupSuffix;
  return device;
}

DeviceModel CudaTestDevice(int work_group_size) {
  DeviceModel device = OpenClTestDevice(4, work_group_size);
  device.kind = "cuda";
  device.isa = device.march = "sm_90";
  return device;
}

}  // namespace fusion::testing
