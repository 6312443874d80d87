// The part of Scheduler that knows the workers, and counts what waits for them.
#include <algorithm>

#include "server/scheduler/scheduler.h"

namespace fusion {

void Scheduler::Seen(const std::string& worker_id, std::set<std::string> offers, bool draining, absl::Time now) {
  const auto [entry, is_new] = workers_.try_emplace(worker_id);
  LiveWorker& worker = entry->second;
  worker.view.id = worker_id;
  const bool was_ready = !is_new && !worker.view.draining && IsLive(worker.view, now) && worker.view.offers == offers;
  worker.view.offers = std::move(offers);
  worker.says_draining = draining;
  worker.view.draining = draining || worker.kept_from_tasks;
  if (!was_ready && !worker.view.draining) ++arrivals_;
  if (worker.view.draining) chance_ = true;  // of a task that it has tried
  worker.view.last_seen = now;
  worker.connected = true;
  if (is_new) {  // may hold a lease from before a restart
    for (const auto& [id, task] : tasks_) {
      if (task.row.state == TaskPhase::kLeased && task.row.worker == worker_id) worker.view.task_id = id;
    }
  }
}

void Scheduler::KeepFromTasks(const std::string& worker_id, bool keep) {
  auto it = workers_.find(worker_id);
  if (it == workers_.end()) return;
  it->second.kept_from_tasks = keep;
  it->second.view.draining = it->second.says_draining || keep;
  chance_ = true;
  ++arrivals_;
}

void Scheduler::SetSource(const std::string& worker_id, const std::string& source) {
  const auto it = workers_.find(worker_id);
  if (it != workers_.end()) it->second.source = source;
}

void Scheduler::Disconnected(const std::string& worker_id, absl::Time now) {
  auto it = workers_.find(worker_id);
  if (it == workers_.end()) return;
  it->second.connected = false, it->second.gone_at = now;
  chance_ = true;  // of tasks that it has tried
}

void Scheduler::Compare(const std::string& worker_id, const std::string& key) {
  if (const auto own = workers_.find(worker_id); own != workers_.end()) {
    own->second.failed.clear();
    own->second.done_by_others = 0;
  }
  const auto task = by_key_.find(key);
  if (task == by_key_.end()) return;
  for (const std::string& id : tasks_.at(task->second).tried) {
    const auto other = workers_.find(id);
    if (other == workers_.end() || other->second.failed.erase(key) == 0) continue;
    if (++other->second.done_by_others < config_.failures_of_a_suspect) continue;
    suspects_.push_back(id);
    other->second.failed.clear();
    other->second.done_by_others = 0;
  }
}

bool Scheduler::SomebodyMay(const LiveTask& task, const std::string& but, absl::Time now) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    const LiveWorker& worker = entry.second;
    // Two heartbeats are longer than a worker pauses before it connects again.
    const bool here = worker.connected ? IsLive(worker.view, now) : now - worker.gone_at <= 2 * config_.heartbeat;
    return here && !worker.view.draining && worker.view.offers.count(task.row.requirement) > 0 &&
           task.heard.count(worker.source) == 0 && (but.empty() || worker.source != but);
  });
}

bool Scheduler::IsStranded(const std::string& task_id, absl::Time now) const {
  const auto task = tasks_.find(task_id);
  return task != tasks_.end() && task->second.row.state == TaskPhase::kQueued && !SomebodyMay(task->second, "", now);
}

bool Scheduler::AnotherMay(const std::string& task_id, absl::Time now) const {
  const auto task = tasks_.find(task_id);
  if (task == tasks_.end()) return false;
  const auto holder = workers_.find(task->second.row.worker);
  return SomebodyMay(task->second, holder == workers_.end() ? "" : holder->second.source, now);
}

bool Scheduler::IsLive(const WorkerView& worker, absl::Time now) const {
  auto it = workers_.find(worker.id);
  return it != workers_.end() && it->second.connected && now - worker.last_seen <= 2 * config_.lease;
}

bool Scheduler::Offers(const WorkerView& worker, const std::string& requirement, absl::Time now) const {
  return !worker.draining && IsLive(worker, now) && worker.offers.count(requirement) > 0;
}

int Scheduler::WorkersThatOffer(const std::string& requirement, absl::Time now) const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return Offers(entry.second.view, requirement, now);
  }));
}

bool Scheduler::SomebodyOffers(const std::string& requirement, absl::Time now) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const auto& entry) { return Offers(entry.second.view, requirement, now); });
}

std::vector<const WorkerView*> Scheduler::Workers() const {
  std::vector<const WorkerView*> views;
  views.reserve(workers_.size());
  for (const auto& [id, worker] : workers_) views.push_back(&worker.view);
  return views;
}

std::map<std::string, int> Scheduler::QueuedTasks() const {
  std::map<std::string, int> queued;
  for (const auto& [id, task] : tasks_) {
    if (task.row.state == TaskPhase::kQueued && task.waiters() > 0) ++queued[task.row.device_kind];
  }
  return queued;
}

absl::Duration Scheduler::OldestQueuedAge(absl::Time now) const {
  absl::Duration oldest;
  for (const auto& [id, task] : tasks_) {
    if (task.row.state == TaskPhase::kQueued && task.waiters() > 0) oldest = std::max(oldest, now - task.queued_at);
  }
  return oldest;
}

}  // namespace fusion
