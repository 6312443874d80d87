#include "tests/conformance/host_device.h"

#include "absl/strings/str_cat.h"
#include "runtime/devices/cpu/isa.h"

namespace fusion::conformance {

DeviceModel HostDevice(const std::string& isa) {
  DeviceModel device;
  device.name = "host";
  const auto wanted = [&](const std::string& name) { return (isa.empty() || isa == name) && CheckIsa(name).ok(); };
  if (wanted("avx512vnni")) {
    device.isa = "avx512vnni";
    device.march = "x86-64-v4+avx512vnni";
  } else if (!wanted("avx512")) {
    device.isa = "avx2";
    device.march = "x86-64-v3";
    device.vector_bytes = 32;
    device.vector_registers = 16;
  }
  device.memory = {{"L1", 32 << 10, 2e11, false},
                   {"L2", 1 << 20, 7e10, false},
                   {"L3", 32 << 20, 2e10, true},
                   {"DRAM", 0, 1e10, true}};
  return device;
}

DeviceModel OpenClDevice(int group) {
  DeviceModel device = HostDevice();
  device.kind = "opencl";
  device.isa = "opencl1.2";
  device.vector_bytes = group > 1 ? 16 : 32;
  device.march = absl::StrCat("float", device.vector_bytes / 4, "x", group);
  device.work_group_size = group;
  device.vector_registers = 16;
  device.byte_dots = false;
  device.persistent_groups = group == 1 ? 2 : 0;  // persistent kernels, or a launch for each phase
  device.memory = {{"local", 32 << 10, 2e11, false}, {"cache", 32 << 20, 2e10, true}, {"global", 0, 1e10, true}};
  return device;
}

DeviceModel CudaDevice() {
  DeviceModel device = OpenClDevice(32);
  device.kind = "cuda";
  device.isa = device.march = "sm_90";
  device.vector_registers = 28;
  device.persistent_groups = 4;
  return device;
}

}  // namespace fusion::conformance
