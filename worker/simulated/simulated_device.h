// The simulated accelerator: its device model and what takes its tasks (README.md).
#ifndef FUSION_WORKER_SIMULATED_SIMULATED_DEVICE_H_
#define FUSION_WORKER_SIMULATED_SIMULATED_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "compiler/cost/device_model.h"
#include "worker/executor/executor.h"

namespace fusion {

inline constexpr char kSimulatedKind[] = "sim";
inline constexpr char kSimulatedToolchain[] = "simulated";

DeviceModel SimulatedDeviceModel(int64_t seed);

// BUILD tasks: the text is the binary, since nothing runs it.
class SimulatedBuildExecutor : public Executor {
 public:
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;
};

// MEASURE tasks: sleeps for `measurement`, whatever is measured, and answers with one sample. INVALID_ARGUMENT when the
// bundle does not say `kernel` and `estimate_ns` among its options (runtime/bundle/FORMAT.md).
class SimulatedMeasureExecutor : public Executor {
 public:
  SimulatedMeasureExecutor(int64_t seed, absl::Duration measurement) : seed_(seed), measurement_(measurement) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;

 private:
  const int64_t seed_;
  const absl::Duration measurement_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_SIMULATED_SIMULATED_DEVICE_H_
