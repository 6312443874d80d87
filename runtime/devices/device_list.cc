#include "absl/strings/str_cat.h"
#include "runtime/devices/cpu/cpu_device.h"
#include "runtime/devices/cuda/cuda_device.h"
#include "runtime/devices/device.h"
#include "runtime/devices/dsa/dsa_device.h"
#include "runtime/devices/null/null_device.h"
#include "runtime/devices/opencl/opencl_device.h"

namespace fusion {
namespace {

struct Entry {
  const char* target;
  std::unique_ptr<Device> (*make)();
};
constexpr Entry kDevices[] = {{"cpu", MakeCpuDevice},
                              {"opencl", MakeOpenClDevice},
                              {"cuda", MakeCudaDevice},
                              {"dsa", MakeDsaDevice},
                              {"null", MakeNullDevice}};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& target) {
  std::string known;
  for (const Entry& entry : kDevices) {
    if (target == entry.target) return entry.make();
    absl::StrAppend(&known, known.empty() ? "" : ", ", entry.target);
  }
  return absl::UnimplementedError(absl::StrCat("the bundle is for target '", target, "'; this runtime runs: ", known));
}

}  // namespace fusion
