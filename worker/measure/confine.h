// Limits of the processes that run kernels and models of others, and compilers on text of others.
#ifndef FUSION_WORKER_MEASURE_CONFINE_H_
#define FUSION_WORKER_MEASURE_CONFINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/backends/confinement/confinement.h"

namespace fusion {

inline constexpr int64_t kMostDataBytes = int64_t{64} << 30;
inline constexpr int64_t kMostCpuSeconds = 600;

// Ends this process with its parent, and limits its CPU time, the files it writes and the memory it uses. Memory is
// limited by RLIMIT_DATA, which counts what is writable and private, not by RLIMIT_AS, which would also count address
// space that is only reserved: CUDA's driver reserves more than a machine has.
void LimitResources(int64_t most_data_bytes = kMostDataBytes, int64_t most_cpu_seconds = kMostCpuSeconds);

// Limits resources, and confines the process to what kernels of `kind` ("cpu", "opencl", "cuda", "dsa") need: these
// bundles, the system's libraries, and for a kind with a driver its devices, caches and helper programs. "none" leaves
// it with the limits. `namespaces` are for kinds without a driver (cpu, dsa) only, since drivers may want devices,
// folders and sockets that are not in view. Fails with INVALID_ARGUMENT for another kind, and as ConfineThisProcess
// does.
absl::Status Confine(const std::string& kind, const std::vector<std::string>& bundles,
                     Namespaces namespaces = Namespaces::kShared);

// The same for a compiler of `kind` ("opencl", "cuda", "dsa") that runs in this process: it writes below `folder` only,
// where its temporary files and caches then are, too, because what a text leaves in a shared cache would get into the
// binaries of others. OpenCL's may use the devices of GPUs and start programs of the system; NVRTC may do neither.
// `namespaces` are for compilers that use no device (cuda, dsa) only.
absl::Status ConfineBuild(const std::string& kind, const std::string& folder,
                          Namespaces namespaces = Namespaces::kShared);

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_CONFINE_H_
