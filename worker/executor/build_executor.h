#ifndef FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_
#define FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_

#include <vector>

#include "compiler/backends/local_toolchain.h"
#include "worker/executor/task_executor.h"

namespace fusion {

// Executes BUILD tasks: turns a serialised BuildPayload, whose units are all of one kind, into a serialised
// BuildResult. The toolchains must outlive it.
class BuildExecutor : public TaskExecutor {
 public:
  explicit BuildExecutor(std::vector<const LocalToolchain*> toolchains) : toolchains_(std::move(toolchains)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;

 private:
  const std::vector<const LocalToolchain*> toolchains_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_
