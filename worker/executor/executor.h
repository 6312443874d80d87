// Executor: one task in, its result's bytes out. Each implementation has one concern; they are stacked in
// worker/worker.cc (after Buildbarn's build executors).
#ifndef FUSION_WORKER_EXECUTOR_EXECUTOR_H_
#define FUSION_WORKER_EXECUTOR_EXECUTOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/worker.pb.h"

namespace fusion {

struct TaskContext {
  std::function<bool()> cancelled;  // never empty; thread-safe
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Blocks until the task is done. Returns soon after `context.cancelled()` turns true, with CANCELLED.
  // INTERNAL and INVALID_ARGUMENT blame the task, UNAVAILABLE and RESOURCE_EXHAUSTED this worker.
  virtual absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                              const TaskContext& context) = 0;
};

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_EXECUTOR_H_
