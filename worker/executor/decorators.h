// Executors that add one concern to another executor. Each owns the executor that it wraps.
#ifndef FUSION_WORKER_EXECUTOR_DECORATORS_H_
#define FUSION_WORKER_EXECUTOR_DECORATORS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "runtime/base/steady_clock.h"
#include "runtime/log/log.h"
#include "worker/executor/task_executor.h"

namespace fusion {

// Selects the executor by task kind. Fails with UNIMPLEMENTED for a kind that is not in the table.
std::unique_ptr<TaskExecutor> ByKind(std::map<v1::TaskKind, std::unique_ptr<TaskExecutor>> table);

// Cancels the inner execution at the task's start-to-close timeout and then reports DEADLINE_EXCEEDED. `now` is
// thread-safe.
std::unique_ptr<TaskExecutor> WithDeadline(std::unique_ptr<TaskExecutor> inner, SteadyClock now = SteadyNow);

// Executes measurements only while this process holds the machine's turn (worker/measure/turn.h), and other tasks at
// once. It must wrap WithDeadline, not be wrapped by it, because waiting for the turn must not count against the task's
// deadline.
std::unique_ptr<TaskExecutor> WithTurn(std::unique_ptr<TaskExecutor> inner, std::string turn_file);

// Writes a line to `log` when a task starts and one when it ends, with its seconds and outcome: a warning if it failed.
std::unique_ptr<TaskExecutor> WithLogging(std::unique_ptr<TaskExecutor> inner, Log log);

// Ignores the payload that it is given, and passes on the bytes that `read` returns for the task's payload digest.
using BlobReader = std::function<absl::StatusOr<std::string>(const std::string& digest, int64_t size_bytes)>;
std::unique_ptr<TaskExecutor> WithPayload(std::unique_ptr<TaskExecutor> inner, BlobReader read);

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_DECORATORS_H_
