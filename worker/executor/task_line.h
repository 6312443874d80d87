// A line of the log about a task: its fields name the task and the job that it belongs to.
#ifndef FUSION_WORKER_EXECUTOR_TASK_LINE_H_
#define FUSION_WORKER_EXECUTOR_TASK_LINE_H_

#include <string>
#include <utility>

#include "proto/worker.pb.h"
#include "runtime/log/log.h"

namespace fusion {

inline LogLine TaskLine(LogLevel level, std::string message, const v1::Task& task) {
  return {level,
          std::move(message),
          {{"job", task.job_id()},
           {"task", task.task_id()},
           {"kind", v1::TaskKind_Name(task.kind())},
           {"description", task.description()},
           {"trace", task.trace_id()}}};
}

}  // namespace fusion

#endif  // FUSION_WORKER_EXECUTOR_TASK_LINE_H_
