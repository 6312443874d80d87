// Rows of tasks for tests, by the calls that farms make.
#ifndef FUSION_DB_STORES_TESTING_ADD_ROWS_H_
#define FUSION_DB_STORES_TESTING_ADD_ROWS_H_

#include <string>
#include <utility>
#include <vector>

#include "db/stores/store.h"

namespace fusion::testing {

// The calls that bring a new task to the row's state, claimed by its worker where it was claimed. Its fence is the
// store's next one.
inline std::vector<TaskCall> CallsFor(const TaskRow& row, int64_t fence, AcceptedRows accepted = {}) {
  std::vector<TaskCall> calls{QueueTask{row}};
  if (row.state == TaskPhase::kQueued) return calls;
  const std::string worker = row.worker.empty() ? "a worker" : row.worker;
  calls.push_back(ClaimTask{row.id, worker, absl::Seconds(30)});
  const TaskClaim claim{row.id, worker, fence};
  if (row.state == TaskPhase::kDone) calls.push_back(CompleteTask{claim, worker, std::move(accepted)});
  if (row.state > TaskPhase::kDone) calls.push_back(FailTask{claim, row.state, true, row.evidence});
  return calls;
}

// `accepted` comes with the first row that is done. Fails with INTERNAL if the store refuses one of the calls.
inline absl::Status Add(Store& store, absl::Span<const TaskRow> tasks, AcceptedRows accepted = {}) {
  absl::StatusOr<int64_t> fence = store.LastFence();
  if (!fence.ok()) return fence.status();
  std::vector<TaskCall> calls;
  int64_t now_ms = 1;
  for (const TaskRow& row : tasks) {
    now_ms = row.updated_ms;
    AcceptedRows rows_of_task = row.state == TaskPhase::kDone ? std::exchange(accepted, {}) : AcceptedRows();
    for (TaskCall& call : CallsFor(row, *fence + 1, std::move(rows_of_task))) calls.push_back(std::move(call));
    if (row.state != TaskPhase::kQueued) ++*fence;
  }
  const absl::StatusOr<std::vector<TaskAnswer>> answers = store.CallTasks(calls, now_ms);
  if (!answers.ok()) return answers.status();
  for (const TaskAnswer& answer : *answers) {
    if (!answer.held) return absl::InternalError("the store refuses a call");
  }
  return absl::OkStatus();
}

// Stores what the result of a task of its own found out.
inline absl::Status AddRows(Store& store, AcceptedRows accepted) {
  TaskRow task;
  task.id = task.key = "a task that brings rows";
  task.state = TaskPhase::kDone;
  return Add(store, {task}, std::move(accepted));
}

}  // namespace fusion::testing

#endif  // FUSION_DB_STORES_TESTING_ADD_ROWS_H_
