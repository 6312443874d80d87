// ProbeCuda: the device model of this machine's GPU by what its driver says of it.
#ifndef FUSION_WORKER_MEASURE_CUDA_PROBE_H_
#define FUSION_WORKER_MEASURE_CUDA_PROBE_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// Of the device that the runtime would take. Rates of arithmetic and memory follow from its clocks; what no driver
// tells (bandwidths of caches, the cost of a launch) is that of the stored device of its architecture, or of the newest
// one that is not newer than it. FAILED_PRECONDITION without a driver or a device.
absl::StatusOr<DeviceModel> ProbeCuda();

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_CUDA_PROBE_H_
