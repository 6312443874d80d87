// ProbeCpu: measures the device model of this machine, so that planners need no constants of machines. It takes about a
// second.
#ifndef FUSION_WORKER_MEASURE_DEVICE_PROBE_H_
#define FUSION_WORKER_MEASURE_DEVICE_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// Measures rates on the calling thread and launch costs with `threads` threads (0: all that this process may use).
// `toolchain` is copied into the model. Fails with UNIMPLEMENTED on a CPU on which no generated kernel runs.
absl::StatusOr<DeviceModel> ProbeCpu(int threads, const std::string& toolchain);

// Returns the model in `cache_file` if it was written less than a day ago by the same program version on the same CPU
// with the same toolchain and threads. Otherwise probes the CPU and writes the file. A file that cannot be written is
// no error.
absl::StatusOr<DeviceModel> ProbeCpuCached(int threads, const std::string& toolchain, const std::string& cache_file);

// Returns the number of cores that this process may use, by affinity and cgroup quota.
int UsableCores();

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_DEVICE_PROBE_H_
