// ProbeOpenCl: the device model of this machine's device of OpenCL, measured by kernels on it. A few seconds, most of
// them the driver's compiler.
#ifndef FUSION_WORKER_MEASURE_OPENCL_PROBE_H_
#define FUSION_WORKER_MEASURE_OPENCL_PROBE_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// Of the device that the runtime would take. Rates are a compute unit's share of what all of them reach together.
// FAILED_PRECONDITION, saying what to install, where there is none.
absl::StatusOr<DeviceModel> ProbeOpenCl();

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_OPENCL_PROBE_H_
