// The simulated accelerator: its device model, and the executors of its tasks (README.md).
#ifndef FUSION_WORKER_SIMULATED_SIMULATED_DEVICE_H_
#define FUSION_WORKER_SIMULATED_SIMULATED_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "compiler/cost/device_model.h"
#include "worker/executor/task_executor.h"

namespace fusion {

inline constexpr char kSimulatedKind[] = "sim";
inline constexpr char kSimulatedToolchain[] = "simulated";

DeviceModel SimulatedDeviceModel(int64_t seed);

// Executes BUILD tasks: the text becomes the binary, since nothing runs it.
class SimulatedBuildExecutor : public TaskExecutor {
 public:
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;
};

// Executes MEASURE tasks: sleeps for `measurement`, whatever is measured, and answers with one sample, which takes
// `pace` times as long as it should (1: an honest device). It says of a whole model that it was not run. Fails with
// INVALID_ARGUMENT if the bundle's options lack `kernel` or `estimate_ns` (runtime/bundle/FORMAT.md).
class SimulatedMeasureExecutor : public TaskExecutor {
 public:
  SimulatedMeasureExecutor(int64_t seed, absl::Duration measurement, double pace = 1)
      : seed_(seed), measurement_(measurement), pace_(pace) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;

 private:
  // Measures one bundle; `outputs`: with a number that it computes.
  absl::StatusOr<v1::MeasureResult> Measure(const std::string& bundle, bool outputs) const;

  const int64_t seed_;
  const absl::Duration measurement_;
  const double pace_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_SIMULATED_SIMULATED_DEVICE_H_
