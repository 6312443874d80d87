// Executor: turns one task into the bytes of its result. Each implementation has one concern; worker/worker.cc stacks
// them (like Buildbarn's build executors).
#ifndef FUSION_WORKER_EXECUTOR_TASK_EXECUTOR_H_
#define FUSION_WORKER_EXECUTOR_TASK_EXECUTOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/worker.pb.h"

namespace fusion {

struct TaskContext {
  std::function<bool()> cancelled;  // never empty; thread-safe
  // Says that the task waits for its turn, and that it does no longer. May be empty; thread-safe.
  std::function<void(bool)> waits = {};
};

class TaskExecutor {
 public:
  virtual ~TaskExecutor() = default;
  // Blocks until the task is done. Soon after `context.cancelled()` becomes true, returns CANCELLED. INTERNAL and
  // INVALID_ARGUMENT mean that the task is at fault, UNAVAILABLE and RESOURCE_EXHAUSTED that this worker is.
  virtual absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                              const TaskContext& context) = 0;
};

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_TASK_EXECUTOR_H_
