// The part of Farm that tells which workers and devices are attached.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/cost/target.h"
#include "server/scheduler/awake_time.h"
#include "server/scheduler/farm.h"

namespace fusion {

int Farm::WorkersThatOffer(const std::string& requirement) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.WorkersThatOffer(requirement, clock_());
}

std::map<std::string, std::vector<const AttachedWorker*>> Farm::DevicesLocked(const std::string& target) const {
  const absl::Time now = clock_();
  const Target wanted = ParseTarget(target);
  std::map<std::string, std::vector<const AttachedWorker*>> devices;
  for (const WorkerView& view : scheduler_.Workers()) {
    auto it = attached_.find(view.id);
    if (it == attached_.end() || view.draining || !scheduler_.IsLive(view, now)) continue;
    if (!it->second.measure_kinds.count(wanted.kind) || !wanted.IsFor(it->second.device)) continue;
    devices[it->second.fingerprint].push_back(&it->second);
  }
  return devices;
}

std::optional<AttachedWorker> Farm::FindDeviceLocked(const std::string& target) const {
  const std::vector<const AttachedWorker*>* chosen = nullptr;
  const auto devices = DevicesLocked(target);
  for (const auto& [fingerprint, workers] : devices) {
    const bool better = chosen == nullptr || workers.size() > chosen->size() ||
                        (workers.size() == chosen->size() && workers[0]->device.name < chosen->front()->device.name);
    if (better) chosen = &workers;
  }
  if (chosen == nullptr) return std::nullopt;
  return *chosen->front();
}

std::vector<std::string> Farm::OtherDevices(const std::string& target, const std::string& fingerprint) const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [other, workers] : DevicesLocked(target)) {
    if (other != fingerprint) names.push_back(absl::StrCat(workers[0]->device.name, " (", other.substr(0, 8), ")"));
  }
  return names;
}

std::optional<AttachedWorker> Farm::FindDevice(const std::string& target) const {
  absl::MutexLock lock(&mutex_);
  return FindDeviceLocked(target);
}

std::optional<AttachedWorker> Farm::AwaitDevice(const std::string& target, absl::Duration timeout,
                                                const std::function<bool()>& cancelled) const {
  AwakeTime waited(clock_());
  const std::string kind = ParseTarget(target).kind;
  const auto count = [&](int change) {
    absl::MutexLock lock(&mutex_);
    awaited_[kind] += change;
  };
  count(1);
  const auto counted = absl::MakeCleanup([&] { count(-1); });
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      std::optional<AttachedWorker> found = FindDeviceLocked(target);
      waited.Look(clock_());
      if (found.has_value() || waited.passed() >= timeout || stopping_) return found;
      changed_.WaitFor(&mutex_, std::min(timeout - waited.passed(), absl::Milliseconds(100)));
    }
    if (cancelled && cancelled()) return std::nullopt;
  }
}

std::string Farm::AttachedKindsLocked() const {
  std::set<std::string> kinds;
  const absl::Time now = clock_();
  for (const WorkerView& view : scheduler_.Workers()) {
    auto it = attached_.find(view.id);
    if (it == attached_.end() || !scheduler_.IsLive(view, now)) continue;
    kinds.insert(it->second.measure_kinds.begin(), it->second.measure_kinds.end());
  }
  return kinds.empty() ? "none" : absl::StrJoin(kinds, ", ");
}

std::string Farm::AttachedKinds() const {
  absl::MutexLock lock(&mutex_);
  return AttachedKindsLocked();
}

std::vector<Farm::WorkerStatusRow> Farm::WorkerStatuses() const {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerStatusRow> rows;
  const absl::Time now = clock_(), wall = absl::Now();
  for (const WorkerView& view : scheduler_.Workers()) {
    auto it = attached_.find(view.id);
    if (it == attached_.end()) continue;
    const TaskRow* task = view.task_id.empty() ? nullptr : scheduler_.Find(view.task_id);
    rows.push_back({it->second, view, scheduler_.IsLive(view, now), task != nullptr ? task->description : "",
                    wall - (now - view.last_seen)});
  }
  return rows;
}

void Farm::UpdateMetrics() {
  const SchedulerCounts& counts = scheduler_.counts();
  metrics_->Count(Metric::kLeaseExpiries, {}, counts.lease_expiries - reported_.lease_expiries);
  metrics_->Count(Metric::kTaskRetries, {}, counts.retries - reported_.retries);
  metrics_->Count(Metric::kPoisonedTasks, {}, counts.poisoned - reported_.poisoned);
  reported_ = counts;
  std::map<std::pair<std::string, std::string>, int> workers;
  const absl::Time now = clock_();
  for (const WorkerView& view : scheduler_.Workers()) {
    auto it = attached_.find(view.id);
    if (it == attached_.end()) continue;
    const std::string kind = it->second.measure_kinds.empty() ? "none" : it->second.device.kind;
    reported_kinds_.insert(kind);
    const bool live = scheduler_.IsLive(view, now);
    ++workers[{kind, !live ? "lost" : view.draining ? "draining" : view.task_id.empty() ? "idle" : "busy"}];
  }
  // Kinds that no worker ever had are waited for, too.
  std::map<std::string, int> waiting = scheduler_.QueuedTasks();
  for (const auto& [kind, jobs] : awaited_) waiting[kind] += jobs;
  for (const auto& [kind, count] : waiting) reported_kinds_.insert(kind);
  for (const std::string& kind : reported_kinds_) {
    for (const char* state : {"idle", "busy", "draining", "lost"}) {
      metrics_->Set(Metric::kWorkers, workers[{kind, state}], {{"device_class", kind}, {"state", state}});
    }
    metrics_->Set(Metric::kQueueDepth, waiting[kind], {{"device_class", kind}});
  }
  metrics_->Set(Metric::kQueueOldestAge, absl::ToDoubleSeconds(scheduler_.OldestQueuedAge(now)));
  metrics_->Set(Metric::kDbWriteQueueDepth, store_->write_queue_depth());
  metrics_->Set(Metric::kDiskFreeBytes, static_cast<double>(artifacts_->FreeBytes()));
}

}  // namespace fusion
