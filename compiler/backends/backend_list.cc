#include "compiler/backends/backend.h"
#include "compiler/backends/cpu/cpu_backend.h"
#include "compiler/backends/cuda/cuda_backend.h"
#include "compiler/backends/opencl/opencl_backend.h"

namespace fusion {
namespace {

struct Entry {
  const char* kind;
  const Backend* (*backend)();
  bool simulated = false;
};
// "sim", the simulated device of workers, takes the CPU's text but runs none of it.
constexpr Entry kBackends[] = {
    {"cpu", CpuBackend}, {"opencl", OpenClBackend}, {"cuda", CudaBackend}, {"sim", CpuBackend, /*simulated=*/true}};

}  // namespace

const Backend* FindBackend(const std::string& kind) {
  for (const Entry& entry : kBackends) {
    if (kind == entry.kind) return entry.backend();
  }
  return nullptr;
}

std::vector<std::string> DeviceKinds() {
  std::vector<std::string> kinds;
  for (const Entry& entry : kBackends) {
    if (!entry.simulated) kinds.emplace_back(entry.kind);
  }
  return kinds;
}

}  // namespace fusion
