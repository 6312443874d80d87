#include "db/stores/task_claims.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

bool IsFinalTask(const TaskRow& row) { return row.state > TaskPhase::kLeased; }

// As in JobClaims: a lease that ends later than any can is from before the machine was started.
bool IsOver(const TaskClaims::Task& task, absl::Time now) {
  return task.lease_until <= now || task.lease_until > now + kLongestLease;
}

}  // namespace

absl::Status CheckCall(const TaskCall& call) {
  const auto* claim = std::get_if<ClaimTask>(&call);
  const auto* renew = std::get_if<RenewTask>(&call);
  if ((claim != nullptr && (claim->worker.empty() || claim->lease > kLongestLease)) ||
      (renew != nullptr && renew->lease > kLongestLease)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a claim has a worker, and a lease of at most ", absl::FormatDuration(kLongestLease)));
  }
  const auto* note = std::get_if<NoteSource>(&call);
  if (note != nullptr && note->row.source.empty()) return absl::InvalidArgumentError("a source has a name");
  const auto* fail = std::get_if<FailTask>(&call);
  if (fail != nullptr && (fail->then == TaskPhase::kLeased || fail->then == TaskPhase::kDone)) {
    return absl::InvalidArgumentError("after a failed attempt a task is queued, poisoned or cancelled");
  }
  if (fail != nullptr && !fail->counts && fail->claim.worker.empty()) {
    return absl::InvalidArgumentError("a task that nobody has has no attempt that could count less");
  }
  return absl::OkStatus();
}

const TaskRow* TaskClaims::Find(const std::string& id) const {
  const auto found = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& task) { return task.row.id == id; });
  return found == tasks_.end() ? nullptr : &found->row;
}

const TaskRow* TaskClaims::FindKey(const std::string& key) const {
  const auto found = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& task) { return task.row.key == key; });
  return found == tasks_.end() ? nullptr : &found->row;
}

TaskClaims::Task* TaskClaims::Held(const TaskClaim& claim) {
  for (Task& task : tasks_) {
    if (task.row.id != claim.task || task.row.fence != claim.fence) continue;
    if (claim.worker.empty() && task.row.state == TaskPhase::kQueued) return &task;
    if (task.row.state == TaskPhase::kLeased && task.row.worker == claim.worker) return &task;
  }
  return nullptr;
}

bool TaskClaims::Do(const QueueTask& call, int64_t now_ms) {
  const TaskRow& row = call.row;
  for (Task& task : tasks_) {
    if ((task.row.id != row.id && task.row.key != row.key) || IsFinalTask(task.row)) continue;
    if (task.row.id != row.id || task.row.key != row.key || task.row.state != TaskPhase::kQueued) return false;
    task.row.payload_digest = row.payload_digest, task.row.payload_bytes = row.payload_bytes;
    task.row.updated_ms = now_ms;
    return true;
  }
  std::erase_if(tasks_, [&](const Task& task) { return task.row.id == row.id || task.row.key == row.key; });
  TaskRow& added = tasks_.emplace_back(Task{row, absl::UnixEpoch()}).row;
  added.job.clear(), added.trace.clear();
  added.state = TaskPhase::kQueued;
  added.attempts = 0, added.fence = 0;
  added.worker.clear(), added.evidence.clear();
  added.updated_ms = now_ms;
  return true;
}

bool TaskClaims::Do(const ClaimTask& call, int64_t now_ms, absl::Time now) {
  for (Task& task : tasks_) {
    if (task.row.id != call.task || IsFinalTask(task.row)) continue;
    if (task.row.state == TaskPhase::kLeased && !IsOver(task, now)) return false;
    task.row.state = TaskPhase::kLeased;
    task.row.worker = call.worker;
    task.row.fence = ++last_fence_;
    ++task.row.attempts;
    task.row.updated_ms = now_ms;
    task.lease_until = now + call.lease;
    return true;
  }
  return false;
}

bool TaskClaims::Do(const RenewTask& call, absl::Time now) {
  Task* task = call.claim.worker.empty() ? nullptr : Held(call.claim);
  if (task != nullptr) task->lease_until = now + call.lease;
  return task != nullptr;
}

bool TaskClaims::Do(const CompleteTask& call, int64_t now_ms) {
  Task* task = Held(call.claim);
  if (task == nullptr) return false;
  task->row.state = TaskPhase::kDone;
  task->row.worker = call.worker;
  task->row.updated_ms = now_ms;
  return true;
}

bool TaskClaims::Do(const FailTask& call, int64_t now_ms) {
  Task* task = Held(call.claim);
  if (task == nullptr) return false;
  task->row.state = call.then;
  if (!call.counts && task->row.attempts > 0) --task->row.attempts;
  task->row.evidence += call.evidence;
  task->row.updated_ms = now_ms;
  return true;
}

TaskAnswer TaskClaims::Call(const TaskCall& call, int64_t now_ms, absl::Time now) {
  TaskAnswer answer;
  if (const auto* queue = std::get_if<QueueTask>(&call)) {
    answer.held = Do(*queue, now_ms);
  } else if (const auto* claim = std::get_if<ClaimTask>(&call)) {
    answer.held = Do(*claim, now_ms, now);
    if (answer.held) answer.fence = last_fence_;
  } else if (const auto* renew = std::get_if<RenewTask>(&call)) {
    answer.held = Do(*renew, now);
  } else if (const auto* complete = std::get_if<CompleteTask>(&call)) {
    answer.held = Do(*complete, now_ms);
  } else if (const auto* fail = std::get_if<FailTask>(&call)) {
    answer.held = Do(*fail, now_ms);
  } else {
    const SourceRow& row = std::get<NoteSource>(call).row;
    sources_[row.source] = row;
    answer.held = true;
  }
  return answer;
}

}  // namespace fusion
