#ifndef FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_
#define FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_

#include "compiler/backends/cpu/toolchain/clang_toolchain.h"
#include "worker/executor/executor.h"

namespace fusion {

// BUILD tasks: a serialised BuildPayload in, a serialised BuildResult out. `toolchain` outlives this.
class BuildExecutor : public Executor {
 public:
  explicit BuildExecutor(const ClangToolchain* toolchain) : toolchain_(toolchain) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override;

 private:
  const ClangToolchain* toolchain_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_BUILD_EXECUTOR_H_
