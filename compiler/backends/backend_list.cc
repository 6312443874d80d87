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
  bool made_up = false;
};

// "sim", whose answers workers make up, takes the CPU's text but runs none of it.
constexpr Entry kBackends[] = {{"cpu", CpuBackend},
                               {"opencl", OpenClBackend},
                               {"cuda", CudaBackend},
                               {"dsa", DsaBackend},
                               {"sim", CpuBackend, /*made_up=*/true}};

std::vector<std::string> Kinds(bool simulated) {
  std::vector<std::string> kinds;
  for (const Entry& entry : kBackends) {
    if (!entry.made_up && entry.backend()->IsSimulated() == simulated) kinds.emplace_back(entry.kind);
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

std::vector<std::string> DeviceKinds() { return Kinds(/*simulated=*/false); }
std::vector<std::string> SimulatedKinds() { return Kinds(/*simulated=*/true); }

}  // namespace fusion
