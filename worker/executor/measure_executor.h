#ifndef FUSION_WORKER_EXECUTOR_MEASURE_EXECUTOR_H_
#define FUSION_WORKER_EXECUTOR_MEASURE_EXECUTOR_H_

#include <string>

#include "absl/time/time.h"
#include "worker/executor/executor.h"

namespace fusion {

struct MeasureExecutorOptions {
  std::string program;                          // path of fusion-measure
  std::string temp_folder;                      // where the tiny bundle is written; empty: $TMPDIR or /tmp
  int default_threads = 1;                      // for tasks that name no number
  absl::Duration deadline = absl::Seconds(60);  // of the process, whatever the task allows
};

// MEASURE tasks: a MeasurePayload in, MeasureResults out. Each runs in a process of its own, so a
// kernel that crashes or hangs costs one task; what the process said last becomes the evidence in the error.
class MeasureExecutor : public Executor {
 public:
  explicit MeasureExecutor(MeasureExecutorOptions options) : options_(std::move(options)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;

 private:
  MeasureExecutorOptions options_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_MEASURE_EXECUTOR_H_
