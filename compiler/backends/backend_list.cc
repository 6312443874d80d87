#include "compiler/backends/backend.h"
#include "compiler/backends/cpu/cpu_backend.h"
#include "compiler/backends/cuda/cuda_backend.h"
#include "compiler/backends/dsa/dsa_backend.h"
#include "compiler/backends/opencl/opencl_backend.h"

namespace fusion {
namespace {

struct Entry {
  const char* kind;
  const Backend* (*backend)();
  enum class Device { kReal, kSimulated, kMadeUp } device = Device::kReal;
};
using D = Entry::Device;

// "dsa" is an accelerator whose simulator computes and counts. "sim", whose answers workers make up, takes the CPU's
// text but runs none of it.
constexpr Entry kBackends[] = {{"cpu", CpuBackend},
                               {"opencl", OpenClBackend},
                               {"cuda", CudaBackend},
                               {"dsa", DsaBackend, D::kSimulated},
                               {"sim", CpuBackend, D::kMadeUp}};

std::vector<std::string> KindsOf(D device) {
  std::vector<std::string> kinds;
  for (const Entry& entry : kBackends) {
    if (entry.device == device) kinds.emplace_back(entry.kind);
  }
  return kinds;
}

}  // namespace

const Backend* FindBackend(const std::string& kind) {
  for (const Entry& entry : kBackends) {
    if (kind == entry.kind) return entry.backend();
  }
  return nullptr;
}

std::vector<std::string> DeviceKinds() { return KindsOf(D::kReal); }
std::vector<std::string> SimulatedKinds() { return KindsOf(D::kSimulated); }

}  // namespace fusion
