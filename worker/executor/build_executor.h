#ifndef FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_
#define FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_

#include <vector>

#include "compiler/backends/local_toolchain.h"
#include "worker/executor/executor.h"

namespace fusion {

// BUILD tasks: a serialised BuildPayload in, whose units are of one kind, a serialised BuildResult out. The toolchains
// outlive this.
class BuildExecutor : public Executor {
 public:
  explicit BuildExecutor(std::vector<const LocalToolchain*> toolchains) : toolchains_(std::move(toolchains)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;

 private:
  const std::vector<const LocalToolchain*> toolchains_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_
