// ProbeOpenCl: measures the device model of this machine's OpenCL device with kernels on it. It takes a few seconds,
// most of them in the driver's compiler.
#ifndef FUSION_WORKER_MEASURE_OPENCL_PROBE_H_
#define FUSION_WORKER_MEASURE_OPENCL_PROBE_H_

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// Probes the device that the runtime would use. Rates are one compute unit's share of the rate that all of them reach
// together. Fails with FAILED_PRECONDITION, saying what to install, if there is no device.
absl::StatusOr<DeviceModel> ProbeOpenCl();

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_OPENCL_PROBE_H_
