// Executors that add one concern to another executor. Each owns the one it wraps.
#ifndef FUSION_WORKER_EXECUTOR_DECORATORS_H_
#define FUSION_WORKER_EXECUTOR_DECORATORS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "worker/executor/executor.h"

namespace fusion {

// Chooses by task kind. UNIMPLEMENTED for a kind that is not in the table.
std::unique_ptr<Executor> ByKind(std::map<v1::TaskKind, std::unique_ptr<Executor>> table);

// Cancels the inner execution at the task's start-to-close timeout and reports DEADLINE_EXCEEDED then.
std::unique_ptr<Executor> WithDeadline(std::unique_ptr<Executor> inner);

// Executes measurements while this process holds the turn of the machine (worker/measure/turn.h), other tasks at once.
// Stands outside of WithDeadline, since waiting is no fault of the task.
std::unique_ptr<Executor> WithTurn(std::unique_ptr<Executor> inner, std::string turn_file);

// One line when a task starts and one when it ends, with its seconds and outcome, to `log`.
std::unique_ptr<Executor> WithLogging(std::unique_ptr<Executor> inner, std::function<void(const std::string&)> log);

// Ignores the payload it is given and hands on the bytes that `read` returns for the task's payload digest.
using BlobReader = std::function<absl::StatusOr<std::string>(const std::string& digest, int64_t size_bytes)>;
std::unique_ptr<Executor> WithPayload(std::unique_ptr<Executor> inner, BlobReader read);

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_DECORATORS_H_
