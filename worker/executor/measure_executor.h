#ifndef FUSION_WORKER_EXECUTOR_MEASURE_EXECUTOR_H_
#define FUSION_WORKER_EXECUTOR_MEASURE_EXECUTOR_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/executor/decorators.h"
#include "worker/executor/task_executor.h"

namespace fusion {

struct MeasureExecutorOptions {
  std::string program;                          // path of fusion-measure
  std::string temp_folder;                      // for the tiny bundles; empty: $TMPDIR or /tmp
  int default_threads = 1;                      // for tasks that name no number
  absl::Duration deadline = absl::Seconds(60);  // of the process, whatever the task allows
  // For whole models: how to read their bundles, and the deadline of the process.
  BlobReader read_blob = nullptr;
  absl::Duration model_deadline = absl::Seconds(120);
  std::string confine;  // the program's --confine: the kind of device, or none; empty: the flag is not given
  bool namespaces = false;
};

// Executes MEASURE tasks: turns a MeasurePayload into MeasureResults. Each task runs in a process of its own, so a
// kernel that crashes or hangs costs one task. The last output of the process becomes the evidence in the error. A
// whole model that is too slow for its deadline is no error, since another attempt would end the same way: the result
// says so.
class MeasureExecutor : public TaskExecutor {
 public:
  explicit MeasureExecutor(MeasureExecutorOptions options) : options_(std::move(options)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;

 private:
  absl::StatusOr<std::string> RunModel(const v1::Task& task, const v1::ModelRun& model, const std::string& folder,
                                       const TaskContext& context);
  absl::StatusOr<std::string> RunPlans(const v1::Task& task, const v1::PlanRun& plans, const std::string& folder,
                                       const TaskContext& context);
  // Reads these bundles, by digest and size, and runs the measuring process on them. Puts the JSON that it prints into
  // `result`, or why there is none into `not_done`, if the process did not end in time.
  absl::Status RunWhole(const v1::Task& task, const std::vector<std::pair<std::string, int64_t>>& bundles,
                        const std::string& flag, int threads, const std::string& folder, const TaskContext& context,
                        google::protobuf::Message* result, std::string* not_done);

  // The program with the flags that every task has.
  std::vector<std::string> Command(const v1::Task& task, int threads) const;

  MeasureExecutorOptions options_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_MEASURE_EXECUTOR_H_
