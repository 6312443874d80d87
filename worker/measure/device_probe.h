// ProbeCpu: the device model of this machine, measured (DESIGN: "never a constant in a planner"). About a second.
#ifndef FUSION_WORKER_MEASURE_DEVICE_PROBE_H_
#define FUSION_WORKER_MEASURE_DEVICE_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// Measures rates on the calling thread and launch costs with `threads` threads (0: all that this process may use).
// `toolchain` is copied into the model. UNIMPLEMENTED on a processor that no generated kernel runs on.
absl::StatusOr<DeviceModel> ProbeCpu(int threads, const std::string& toolchain);

// The same, read from `cache_file` when that was written less than a day ago by the same program version on the same
// processor with the same toolchain and threads; written there otherwise. An unwritable file is no error.
absl::StatusOr<DeviceModel> ProbeCpuCached(int threads, const std::string& toolchain, const std::string& cache_file);

// Cores that this process may use: affinity and cgroup quota.
int UsableCores();

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_DEVICE_PROBE_H_
