#include "server/scheduler/scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

bool IsFinalTask(const TaskRow& row) { return row.state > TaskPhase::kLeased; }

// A build that fails because of its source text fails on every worker.
bool IsDeterministic(const TaskRow& row, const absl::Status& error) {
  return row.kind == TaskType::kBuild &&
         (error.code() == absl::StatusCode::kInternal || error.code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace

void Scheduler::Change(LiveTask& task, TaskPhase state, absl::Time now) {
  const bool waits = state == TaskPhase::kQueued;
  if (waits && !task.waits) task.queued_at = now;
  if (waits != task.waits) {
    for (const std::string& job : task.jobs) {
      if (waits) {
        queue_.Push(job, task.row.requirement, task.order, task.row.id);
      } else {
        queue_.Remove(job, task.row.requirement, task.order);
      }
    }
  }
  task.waits = waits;
  chance_ = chance_ || waits;
  task.row.state = state;
  if (IsFinalTask(task.row)) by_key_.erase(task.row.key);
  changed_.insert(task.row.id);
}

void Scheduler::AddWaiter(LiveTask& task, const std::string& job) {
  task.jobs.push_back(job);
  chance_ = chance_ || task.waits;
  if (task.waits) queue_.Push(job, task.row.requirement, task.order, task.row.id);
}

void Scheduler::Restore(const TaskRow& row, absl::Time now) {
  if (IsFinalTask(row)) return;
  LiveTask& task = tasks_[row.id];
  task.row = row;
  task.order = next_order_++;
  task.queued_at = task.added_at = task.leased_at = task.ran_at = now;
  by_key_[row.key] = row.id;
  if (row.state == TaskPhase::kLeased) {
    task.lease_until = now + config_.lease + config_.heartbeat;
  } else {
    task.waits = true;
  }
}

std::string Scheduler::Add(TaskRow row, absl::Time now) {
  auto known = by_key_.find(row.key);
  if (known != by_key_.end()) {
    LiveTask& task = tasks_[known->second];
    if (task.waiters() == 0) task.added_at = task.queued_at = now;
    AddWaiter(task, row.job);
    if (task.row.job.empty()) {  // a task from before a restart
      task.row.job = std::move(row.job);
      task.row.trace = std::move(row.trace);
    }
    return known->second;
  }
  if (const auto done = unasked_.find(row.key); done != unasked_.end()) {
    const std::string id = done->second;
    unasked_.erase(done);
    AddWaiter(tasks_[id], row.job);
    return id;
  }
  row.id = absl::StrCat("t-", row.key.substr(0, 24));
  // A final task with the same key that someone still reads keeps its id. This task is a new attempt and gets another
  // id.
  while (tasks_.count(row.id)) absl::StrAppend(&row.id, "+");
  row.attempts = 0, row.fence = 0;
  row.worker.clear(), row.evidence.clear();
  LiveTask& task = tasks_[row.id];
  task.added_at = now;
  task.row = std::move(row);
  task.order = next_order_++;
  task.jobs = {task.row.job};
  by_key_[task.row.key] = task.row.id;
  Change(task, TaskPhase::kQueued, now);
  return task.row.id;
}

void Scheduler::Release(const std::string& task_id, absl::Time now, const std::string& job) {
  auto it = tasks_.find(task_id);
  if (it == tasks_.end()) return;
  LiveTask& task = it->second;
  if (const auto waiter = std::find(task.jobs.begin(), task.jobs.end(), job); waiter != task.jobs.end()) {
    task.jobs.erase(waiter);
    if (task.waits && std::count(task.jobs.begin(), task.jobs.end(), job) == 0) {
      queue_.Remove(job, task.row.requirement, task.order);
    }
  }
  if (task.waiters() > 0) return;
  if (!IsFinalTask(it->second.row)) {
    EndLease(it->second);
    Change(it->second, TaskPhase::kCancelled, now);
  }
  if (changed_.erase(task_id)) forgotten_changes_.push_back(it->second.row);
  tasks_.erase(it);
}

const TaskRow* Scheduler::Find(const std::string& task_id) const {
  auto it = tasks_.find(task_id);
  return it == tasks_.end() ? nullptr : &it->second.row;
}

bool Scheduler::Holds(const std::string& worker_id, const std::string& task_id, int64_t fence) const {
  auto it = tasks_.find(task_id);
  return it != tasks_.end() && it->second.row.state == TaskPhase::kLeased && it->second.row.fence == fence &&
         it->second.row.worker == worker_id;
}

bool Scheduler::Renew(const std::string& worker_id, const std::string& task_id, int64_t fence, TaskStage stage,
                      absl::Time now) {
  if (!Holds(worker_id, task_id, fence)) return false;
  LiveTask& task = tasks_[task_id];
  task.lease_until = std::max(task.lease_until, now + config_.lease);
  task.stage = stage;
  if (stage == TaskStage::kWaiting) task.ran_at = now;
  return true;
}

void Scheduler::EndLease(LiveTask& task) {
  auto worker = workers_.find(task.row.worker);
  if (worker != workers_.end() && worker->second.view.task_id == task.row.id) worker->second.view.task_id.clear();
}

bool Scheduler::Complete(const std::string& worker_id, const std::string& task_id, int64_t fence, absl::Time now) {
  if (!Holds(worker_id, task_id, fence)) return false;
  LiveTask& task = tasks_[task_id];
  auto worker = workers_.find(task.row.worker);
  if (worker != workers_.end()) ++worker->second.view.tasks_done;
  EndLease(task);
  Compare(worker_id, task.row.key);
  if (task.waiters() == 0) unasked_[task.row.key] = task_id;
  Change(task, TaskPhase::kDone, now);
  return true;
}

bool Scheduler::Fail(const std::string& worker_id, const std::string& task_id, int64_t fence, const absl::Status& error,
                     absl::Time now) {
  if (!Holds(worker_id, task_id, fence)) return false;
  LiveTask& task = tasks_[task_id];
  auto worker = workers_.find(task.row.worker);
  if (worker != workers_.end()) ++worker->second.view.tasks_failed;
  EndAttempt(task, error.ToString(), IsDeterministic(task.row, error), now);
  return true;
}

bool Scheduler::LosePayload(const std::string& worker_id, const std::string& task_id, int64_t fence, absl::Time now) {
  if (!Holds(worker_id, task_id, fence)) return false;
  LiveTask& task = tasks_[task_id];
  if (++task.payloads_lost > config_.max_attempts) {
    Poison(task, absl::StrCat("this server lost the task's payload ", task.payloads_lost, " times: check its disk"),
           now);
    return true;
  }
  --task.row.attempts;
  task.lacks_payload = true;
  EndLease(task);
  Change(task, TaskPhase::kQueued, now);
  return true;
}

void Scheduler::TakeFence(const std::string& task_id, int64_t fence) {
  last_fence_ = std::max(last_fence_, fence);
  const auto task = tasks_.find(task_id);
  if (task != tasks_.end()) task->second.row.fence = fence;
}

void Scheduler::LoseClaim(const std::string& task_id, absl::Time now) {
  const auto found = tasks_.find(task_id);
  if (found == tasks_.end() || found->second.row.state != TaskPhase::kLeased) return;
  LiveTask& task = found->second;
  --task.row.attempts;
  task.not_before = now + config_.lease;
  EndLease(task);
  Change(task, TaskPhase::kQueued, now);
}

bool Scheduler::Again(const std::string& worker_id, const std::string& task_id, int64_t fence,
                      const std::string& evidence, bool refused, absl::Time now) {
  if (!Holds(worker_id, task_id, fence)) return false;
  LiveTask& task = tasks_[task_id];
  if (const auto worker = workers_.find(worker_id); worker != workers_.end()) {
    task.heard.insert(worker->second.source);
    if (refused) {
      ++worker->second.view.tasks_failed;
    } else {
      ++worker->second.view.tasks_done;
      worker->second.failed.clear();
      worker->second.done_by_others = 0;
    }
  }
  if (refused) absl::StrAppend(&task.row.evidence, "refused from worker ", worker_id, ": ", evidence, "\n");
  --task.row.attempts;
  ++counts_.retries;
  EndLease(task);
  Change(task, TaskPhase::kQueued, now);
  return true;
}

void Scheduler::CompleteQueued(const std::string& task_id, const std::string& worker_id, absl::Time now) {
  LiveTask& task = tasks_.at(task_id);
  task.row.worker = worker_id;
  if (task.waiters() == 0) unasked_[task.row.key] = task_id;
  Change(task, TaskPhase::kDone, now);
}

void Scheduler::GiveUpQueued(const std::string& task_id, const std::string& why, absl::Time now) {
  Poison(tasks_.at(task_id), why, now);
}

bool Scheduler::TakesPayload(const std::string& task_id) const {
  auto it = tasks_.find(task_id);
  return it != tasks_.end() && it->second.row.state == TaskPhase::kQueued;
}

bool Scheduler::LacksPayload(const std::string& task_id) const {
  auto it = tasks_.find(task_id);
  return it != tasks_.end() && it->second.lacks_payload;
}

void Scheduler::GivePayload(const std::string& task_id, const std::string& digest, int64_t size_bytes) {
  LiveTask& task = tasks_.at(task_id);
  if (!task.lacks_payload && task.row.payload_digest == digest) return;
  task.lacks_payload = false;
  task.row.payload_digest = digest, task.row.payload_bytes = size_bytes;
  chance_ = true;
  changed_.insert(task_id);
}

void Scheduler::EndAttempt(LiveTask& task, const std::string& evidence, bool final_error, absl::Time now) {
  constexpr size_t kMaxEvidence = 2000;
  absl::StrAppend(&task.row.evidence, "attempt ", task.row.attempts, " on worker ", task.row.worker, ": ",
                  evidence.substr(0, kMaxEvidence), "\n");
  task.tried.insert(task.row.worker);
  constexpr size_t kMostFailed = 64;  // of which it is remembered that the worker failed at them
  if (const auto worker = workers_.find(task.row.worker); worker != workers_.end()) {
    std::set<std::string>& failed = worker->second.failed;
    if (failed.size() >= kMostFailed) failed.erase(failed.begin());
    failed.insert(task.row.key);
  }
  EndLease(task);
  if (final_error || task.row.attempts >= config_.max_attempts) {
    ++counts_.poisoned;
    Change(task, TaskPhase::kPoisoned, now);
  } else {
    ++counts_.retries;
    Change(task, TaskPhase::kQueued, now);
  }
}

void Scheduler::Poison(LiveTask& task, const std::string& evidence, absl::Time now) {
  absl::StrAppend(&task.row.evidence, evidence, "\n");
  EndLease(task);
  ++counts_.poisoned;
  Change(task, TaskPhase::kPoisoned, now);
}

bool Scheduler::MayTry(const LiveTask& task, const LiveWorker& worker, absl::Time now) const {
  if (task.waiters() == 0) return false;  // restored, and nobody has asked for it again yet
  if (now < task.not_before) return false;
  if (task.lacks_payload || task.heard.count(worker.source) > 0) return false;
  if (!task.tried.count(worker.view.id)) return true;
  return std::none_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    const WorkerView& other = entry.second.view;
    return !task.tried.count(other.id) && !task.heard.count(entry.second.source) && !other.draining &&
           IsLive(other, now) && other.offers.count(task.row.requirement);
  });
}

std::optional<TaskRow> Scheduler::Assign(const std::string& worker_id, absl::Time now) {
  auto it = workers_.find(worker_id);
  if (it == workers_.end()) return std::nullopt;
  WorkerView& worker = it->second.view;
  if (!worker.task_id.empty()) {
    auto held = tasks_.find(worker.task_id);
    if (held != tasks_.end() && held->second.row.state == TaskPhase::kLeased) {
      held->second.lease_until = now + config_.lease;
      return held->second.row;
    }
    worker.task_id.clear();
  }
  if (worker.draining) return std::nullopt;
  const std::string next =
      queue_.Take(worker.offers, [&](const std::string& id) { return MayTry(tasks_.at(id), it->second, now); });
  if (next.empty()) return std::nullopt;
  LiveTask* best = &tasks_.at(next);
  best->row.fence = ++last_fence_;
  best->row.worker = worker_id;
  ++best->row.attempts;
  best->lease_until = now + config_.lease;
  best->leased_at = best->ran_at = now;
  best->stage = TaskStage::kUnknown;
  worker.task_id = best->row.id;
  Change(*best, TaskPhase::kLeased, now);
  return best->row;
}

std::string Scheduler::LimitReached(const LiveTask& task, absl::Time now) const {
  if (task.row.timeout_ms <= 0) return "";
  const absl::Duration limit = absl::Milliseconds(task.row.timeout_ms) + config_.close_slack;
  // A worker that says when it begins has the limit from then on. Each has it once it could have had its turn.
  const bool ran_too_long = task.stage == TaskStage::kRunning && now - task.ran_at > limit;
  if (!ran_too_long && now - task.leased_at <= config_.longest_turn + limit) return "";
  return absl::StrCat("not finished within its ", absl::FormatDuration(absl::Milliseconds(task.row.timeout_ms)),
                      ", although the worker still answered");
}

void Scheduler::Extend(absl::Duration blind) {
  for (auto& [id, task] : tasks_) {
    for (absl::Time* time : {&task.lease_until, &task.leased_at, &task.ran_at, &task.queued_at, &task.added_at}) {
      *time += blind;
    }
  }
  for (auto& [id, worker] : workers_) worker.view.last_seen += blind;
}

void Scheduler::Tick(absl::Time now) {
  for (auto& [id, task] : tasks_) {
    const bool leased = task.row.state == TaskPhase::kLeased;
    if (leased && task.lease_until <= now) {
      ++counts_.lease_expiries;
      EndAttempt(task, "no heartbeat before the lease ran out", false, now);
    } else if (const std::string limit = leased ? LimitReached(task, now) : ""; !limit.empty()) {
      EndAttempt(task, limit, false, now);
    }
    if (IsFinalTask(task.row)) continue;
    const bool queued = task.row.state == TaskPhase::kQueued;
    if (queued && task.waiters() == 0 && now - task.queued_at > config_.orphan) {
      Change(task, TaskPhase::kCancelled, now);
    } else if (task.waiters() > 0 && now - task.added_at > config_.schedule_to_close) {
      Poison(task, absl::StrCat("not done within ", absl::FormatDuration(config_.schedule_to_close)), now);
    } else if (queued && task.waiters() > 0 && now - task.queued_at > config_.schedule_to_start) {
      Poison(task, absl::StrCat("no worker took it within ", absl::FormatDuration(config_.schedule_to_start)), now);
    }
  }
  std::erase_if(unasked_, [&](const auto& entry) {
    const auto task = tasks_.find(entry.second);
    if (now - task->second.leased_at <= config_.orphan) return false;
    tasks_.erase(task);
    return true;
  });
  if (now < forget_at_) return;
  forget_at_ = now + config_.lease / 10;
  for (auto it = workers_.begin(); it != workers_.end();) {
    const bool gone = it->second.view.task_id.empty() && now - it->second.view.last_seen > 10 * config_.lease;
    it = gone ? workers_.erase(it) : std::next(it);
  }
}

bool Scheduler::IsUnasked(const TaskRow& row) const {
  const auto it = unasked_.find(row.key);
  return it != unasked_.end() && it->second == row.id;
}

std::vector<TaskRow> Scheduler::TakeChanged() {
  std::vector<TaskRow> rows = std::move(forgotten_changes_);
  forgotten_changes_.clear();
  for (const std::string& id : changed_) {
    auto it = tasks_.find(id);
    if (it == tasks_.end()) continue;
    rows.push_back(it->second.row);
    // Restored, and nobody has asked for it again.
    if (IsFinalTask(it->second.row) && it->second.waiters() == 0 && !IsUnasked(it->second.row)) tasks_.erase(it);
  }
  changed_.clear();
  std::stable_partition(rows.begin(), rows.end(), IsFinalTask);
  return rows;
}

}  // namespace fusion
