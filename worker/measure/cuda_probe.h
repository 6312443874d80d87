// ProbeCuda: derives the device model of this machine's GPU from what its driver reports.
#ifndef FUSION_WORKER_MEASURE_CUDA_PROBE_H_
#define FUSION_WORKER_MEASURE_CUDA_PROBE_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// Probes the device that the runtime would use. Rates of arithmetic and memory follow from the device's clocks. Figures
// that no driver reports (bandwidths of caches, the cost of a launch) come from the stored device of the same
// architecture, or of the newest one that is not newer. Fails with FAILED_PRECONDITION without a driver or a device.
absl::StatusOr<DeviceModel> ProbeCuda();

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_CUDA_PROBE_H_
