// The part of Farm that tells which workers and devices are attached.
#include <algorithm>
#include <tuple>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/cost/target.h"
#include "runtime/base/status_macros.h"
#include "server/scheduler/awake_time.h"
#include "server/scheduler/farm.h"

namespace fusion {

int Farm::WorkersThatOffer(const std::string& requirement) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.WorkersThatOffer(requirement, clock_());
}

int64_t Farm::Arrivals() const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.arrivals();
}

std::vector<FarmBuilder> Farm::BuildersLocked(const std::string& kind) const {
  const absl::Time now = clock_();
  std::map<std::tuple<bool, std::string, std::string>, FarmBuilder> builders;
  for (const WorkerView* view : scheduler_.Workers()) {
    auto it = attached_.find(view->id);
    if (it == attached_.end() || view->draining || !scheduler_.IsLive(*view, now)) continue;
    const AttachedWorker& worker = it->second;
    if (worker.toolchain_kinds.count(kind) == 0) continue;
    const WorkerToolchain toolchain = worker.ToolchainOf(kind);
    builders[{!worker.trusted_builds, worker.token, toolchain.digest}] = {
        kind, worker.token, toolchain.digest, worker.trusted_builds, toolchain.reproduces, worker.name};
  }
  std::vector<FarmBuilder> listed;
  for (auto& [key, builder] : builders) listed.push_back(std::move(builder));
  return listed;
}

std::vector<FarmBuilder> Farm::Builders(const std::string& kind) const {
  absl::MutexLock lock(&mutex_);
  return BuildersLocked(kind);
}

std::optional<FarmBuilder> Farm::AwaitBuilder(const std::string& kind,
                                              const std::function<bool(const FarmBuilder&)>& fits,
                                              const std::string& why, const FarmWait& wait) const {
  FarmLack lack{.kind = kind, .words = why, .timeout = wait.queue_timeout};
  if (wait.needs) {
    lack.failure =
        absl::StrCat(why, "; no other builder for ", kind, " came within ", absl::FormatDuration(wait.queue_timeout));
  }
  const absl::Duration before = wait.WaitedFor(lack.requirement);
  AwakeTime waited(clock_());
  bool away = false;
  const auto come_back = absl::MakeCleanup([&] {
    if (away) wait.away(false);
  });
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      lack.besides.clear();
      for (const FarmBuilder& builder : BuildersLocked(kind)) {
        if (fits(builder)) return builder;
        lack.besides.insert(builder.Requirement());
      }
      waited.Look(clock_());
      lack.waited = before + waited.passed();
      if (lack.waited >= lack.timeout || stopping_) return std::nullopt;
      if (away || !wait.away) {
        threads_->WaitFor(&changed_, &mutex_, std::min(lack.timeout - lack.waited, absl::Milliseconds(100)));
      }
    }
    if (wait.away && !std::exchange(away, true)) wait.away(true);
    if (wait.cancelled && wait.cancelled()) return std::nullopt;
    if (wait.gives_up && wait.gives_up(lack)) return std::nullopt;
  }
}

bool Farm::Has(const FarmLack& lack) const {
  absl::MutexLock lock(&mutex_);
  if (!lack.requirement.empty()) return scheduler_.SomebodyOffers(lack.requirement, clock_());
  const std::vector<FarmBuilder> builders = BuildersLocked(lack.kind);
  return std::any_of(builders.begin(), builders.end(),
                     [&](const FarmBuilder& builder) { return lack.besides.count(builder.Requirement()) == 0; });
}

std::map<std::string, std::vector<const AttachedWorker*>> Farm::DevicesLocked(const DeviceWish& wish) const {
  const absl::Time now = clock_();
  std::map<std::string, std::vector<const AttachedWorker*>> devices;
  for (const WorkerView* view : scheduler_.Workers()) {
    auto it = attached_.find(view->id);
    if (it == attached_.end() || view->draining || !scheduler_.IsLive(*view, now)) continue;
    if (!wish.Fits(it->second)) continue;
    devices[it->second.fingerprint].push_back(&it->second);
  }
  return devices;
}

std::optional<AttachedWorker> Farm::FindDeviceLocked(const DeviceWish& wish) const {
  const std::vector<const AttachedWorker*>* chosen = nullptr;
  const auto devices = DevicesLocked(wish);
  for (const auto& [fingerprint, workers] : devices) {
    const bool better = chosen == nullptr || workers.size() > chosen->size() ||
                        (workers.size() == chosen->size() && workers[0]->device.name < chosen->front()->device.name);
    if (better) chosen = &workers;
  }
  if (chosen == nullptr) return std::nullopt;
  return *chosen->front();
}

std::vector<std::string> Farm::OtherDevices(const DeviceWish& wish, const std::string& fingerprint) const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [other, workers] : DevicesLocked(wish)) {
    if (other != fingerprint) names.push_back(absl::StrCat(workers[0]->device.name, " (", other.substr(0, 8), ")"));
  }
  return names;
}

std::optional<AttachedWorker> Farm::FindDevice(const DeviceWish& wish) const {
  absl::MutexLock lock(&mutex_);
  return FindDeviceLocked(wish);
}

std::optional<AttachedWorker> Farm::AwaitDevice(const DeviceWish& wish, absl::Duration timeout,
                                                const std::function<bool()>& cancelled) const {
  AwakeTime waited(clock_());
  const std::string kind = ParseTarget(wish.target).kind;
  CountAwaited(kind, 1);
  const auto counted = absl::MakeCleanup([&] { CountAwaited(kind, -1); });
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      std::optional<AttachedWorker> found = FindDeviceLocked(wish);
      waited.Look(clock_());
      if (found.has_value() || waited.passed() >= timeout || stopping_) return found;
      threads_->WaitFor(&changed_, &mutex_, std::min(timeout - waited.passed(), absl::Milliseconds(100)));
    }
    if (cancelled && cancelled()) return std::nullopt;
  }
}

void Farm::CountAwaited(const std::string& kind, int change) const {
  absl::MutexLock lock(&mutex_);
  awaited_[kind] += change;
}

std::string Farm::AttachedKindsLocked() const {
  std::set<std::string> kinds, drained;
  const absl::Time now = clock_();
  for (const WorkerView* view : scheduler_.Workers()) {
    auto it = attached_.find(view->id);
    if (it == attached_.end() || !scheduler_.IsLive(*view, now)) continue;
    if (IsKeptFromTasks(it->second)) {
      drained.insert(it->second.name);
    } else {
      kinds.insert(it->second.measure_kinds.begin(), it->second.measure_kinds.end());
    }
  }
  std::string words = kinds.empty() ? "none" : absl::StrJoin(kinds, ", ");
  if (!drained.empty()) absl::StrAppend(&words, " (drained: ", absl::StrJoin(drained, ", "), ")");
  return words;
}

std::string Farm::AttachedKinds() const {
  absl::MutexLock lock(&mutex_);
  return AttachedKindsLocked();
}

std::vector<Farm::WorkerStatusRow> Farm::WorkerStatuses() const {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerStatusRow> rows;
  const absl::Time now = clock_(), wall = absl::Now();
  for (const WorkerView* view : scheduler_.Workers()) {
    auto it = attached_.find(view->id);
    if (it == attached_.end()) continue;
    const TaskRow* task = view->task_id.empty() ? nullptr : scheduler_.Find(view->task_id);
    const auto rates = rates_differ_.find(view->id);
    rows.push_back({it->second, *view, scheduler_.IsLive(*view, now), task != nullptr ? task->description : "",
                    wall - (now - view->last_seen),
                    absl::StrCat(judge_.InWords(it->second.source), rates == rates_differ_.end() ? "" : "; ",
                                 rates == rates_differ_.end() ? "" : rates->second)});
  }
  return rows;
}

bool Farm::IsQuarantined(const std::string& source) const {
  const auto found = drained_.find(source);
  return !source.empty() && found != drained_.end() && found->second.quarantined;
}

std::string Farm::SourceOf(const std::string& name) const {
  for (const auto& [id, worker] : attached_) {
    if (worker.name == name && !worker.source.empty()) return worker.source;
  }
  return name;
}

bool Farm::IsDrained(const std::string& name) const {
  const auto found = drained_.find(name);
  return found != drained_.end() && found->second.HoldsAt(absl::ToUnixMillis(wall_clock_()));
}

void Farm::ApplyDrain(const std::string& name) {
  const bool drained = IsDrained(name);
  if (drained) {
    applied_drains_.insert(name);
  } else {
    applied_drains_.erase(name);
  }
  for (const auto& [id, worker] : attached_) {
    if (worker.name == name || worker.source == name) scheduler_.KeepFromTasks(id, IsKeptFromTasks(worker));
  }
  changed_.SignalAll();
  Wake();
}

namespace {

std::string ReasonOfSuspect(int failures) {
  return absl::StrCat("it failed ", failures,
                      " tasks in a row that other workers then did; look at its driver and its log");
}

}  // namespace

void Farm::LookAtWindows(Round* round) {
  const int64_t now_ms = absl::ToUnixMillis(wall_clock_());
  for (auto it = drained_.begin(); it != drained_.end();) {
    const std::string name = it->first;
    const bool over = it->second.IsOverAt(now_ms);
    it = over ? drained_.erase(it) : std::next(it);
    if (over) round->windows_over.push_back(name);
    if (IsDrained(name) != (applied_drains_.count(name) > 0)) ApplyDrain(name);
  }
  for (const std::string& id : scheduler_.TakeSuspects()) {
    const auto worker = attached_.find(id);
    if (worker == attached_.end() || IsKeptFromTasks(worker->second)) continue;
    if (worker->second.source.empty() || worker->second.measure_kinds.empty()) {
      round->suspects.insert(worker->second.name);
    } else {
      judge_.Fails(worker->second.source, ReasonOfSuspect(round->failures_of_a_suspect));
    }
  }
  round->quarantines = judge_.TakeQuarantines();
}

void Farm::DrainSuspects(const Round& round) {
  for (const std::string& name : round.windows_over) {
    {
      absl::MutexLock lock(&mutex_);
      if (drained_.count(name) > 0) continue;  // an operator has drained it anew
    }
    // One that stays is over at the next start, too.
    (void)store_->RemoveDrainedWorker(name);
    log_({LogLevel::kInfo, "the window of a drained worker is over", {{"name", name}}});
  }
  for (const std::string& name : round.suspects) {
    const std::string reason = ReasonOfSuspect(round.failures_of_a_suspect);
    const absl::Status drained = Drain({name, reason, "fusiond", absl::ToUnixMillis(wall_clock_()), 0, 0});
    log_({LogLevel::kError, "worker drained", {{"name", name}, {"reason", reason}, {"error", drained.ToString()}}});
  }
  for (const DueQuarantine& due : round.quarantines) {
    if (QuarantineDue(due).ok()) continue;
    absl::MutexLock lock(&mutex_);
    judge_.TryAgain(due);  // in the next round
  }
}

absl::Status Farm::QuarantineDue(const DueQuarantine& due) {
  const absl::Status quarantined =
      Quarantine({due.source, due.reason, "fusiond", absl::ToUnixMillis(wall_clock_())}, due.cause).status();
  log_({LogLevel::kError,
        absl::StartsWith(due.source, kImportedSource) ? "imported rows quarantined" : "worker quarantined",
        {{"source", due.source}, {"reason", due.reason}, {"error", quarantined.ToString()}}});
  return quarantined;
}

absl::StatusOr<DrainedWorkerRow> Farm::Quarantine(DrainedWorkerRow worker, const std::string& cause) {
  worker.quarantined = true;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, attached] : attached_) {
      if (attached.name == worker.name && attached.source.empty()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "worker '", worker.name, "' is believed: it runs as the server's user, or without a token; drain it"));
      }
    }
    worker.name = SourceOf(worker.name);
    // At once: until the rows are marked, nothing more of it counts.
    drained_[worker.name] = worker;
    judge_.Expel(worker.name);
    ApplyDrain(worker.name);
  }
  RETURN_IF_ERROR(store_->PutDrainedWorker(worker));
  metrics_->Count(Metric::kQuarantines, {{"reason", cause}});
  return worker;
}

absl::Status Farm::Drain(const DrainedWorkerRow& worker) {
  std::set<std::string> names;
  {
    absl::MutexLock lock(&mutex_);
    if (IsQuarantined(SourceOf(worker.name))) {
      return absl::FailedPreconditionError(absl::StrCat("'", worker.name, "' is in quarantine: release it first"));
    }
    for (const WorkerView* view : scheduler_.Workers()) {
      auto it = attached_.find(view->id);
      if (it != attached_.end()) names.insert(it->second.name);
    }
  }
  if (names.count(worker.name) == 0) {
    return absl::NotFoundError(absl::StrCat(
        "no worker '", worker.name, "' is attached; attached: ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  if (worker.IsOverAt(absl::ToUnixMillis(wall_clock_())) ||
      (worker.until_ms > 0 && worker.until_ms <= worker.from_ms)) {
    return absl::InvalidArgumentError("the window ends before it begins, or is over");
  }
  RETURN_IF_ERROR(store_->PutDrainedWorker(worker));
  absl::MutexLock lock(&mutex_);
  drained_[worker.name] = worker;
  ApplyDrain(worker.name);
  return absl::OkStatus();
}

absl::StatusOr<DrainedWorkerRow> Farm::Release(const std::string& name) {
  DrainedWorkerRow released;
  {
    absl::MutexLock lock(&mutex_);
    auto it = drained_.find(name);
    if (it == drained_.end()) it = drained_.find(SourceOf(name));
    if (it == drained_.end()) {
      return absl::NotFoundError(absl::StrCat("worker '", name, "' is not drained and not in quarantine"));
    }
    released = it->second;
  }
  RETURN_IF_ERROR(store_->RemoveDrainedWorker(released.name));
  absl::MutexLock lock(&mutex_);
  drained_.erase(released.name);
  if (released.quarantined) judge_.Pardon(released.name);
  ApplyDrain(released.name);
  return released;
}

std::vector<DrainedWorkerRow> Farm::Drained() const {
  absl::MutexLock lock(&mutex_);
  std::vector<DrainedWorkerRow> rows;
  for (const auto& [name, row] : drained_) rows.push_back(row);
  return rows;
}

void Farm::UpdateMetrics() {
  const SchedulerCounts& counts = scheduler_.counts();
  metrics_->Count(Metric::kLeaseExpiries, {}, counts.lease_expiries - reported_.lease_expiries);
  metrics_->Count(Metric::kTaskRetries, {}, counts.retries - reported_.retries);
  metrics_->Count(Metric::kPoisonedTasks, {}, counts.poisoned - reported_.poisoned);
  reported_ = counts;
  metrics_->Set(Metric::kDbWriteQueueDepth, store_->write_queue_depth());
  // The rest looks at every worker and every task, and a busy farm has hundreds of rounds a second.
  constexpr absl::Duration kPauseOfGauges = absl::Milliseconds(250);
  if (const absl::Duration passed = clock_() - gauges_set_at_;
      passed > absl::ZeroDuration() && passed < kPauseOfGauges) {
    return;
  }
  gauges_set_at_ = clock_();
  std::map<std::pair<std::string, std::string>, int> workers;
  const absl::Time now = clock_();
  for (const WorkerView* view : scheduler_.Workers()) {
    auto it = attached_.find(view->id);
    if (it == attached_.end()) continue;
    const std::string kind = it->second.measure_kinds.empty() ? "none" : it->second.device.kind;
    reported_kinds_.insert(kind);
    const bool live = scheduler_.IsLive(*view, now);
    ++workers[{kind, !live ? "lost" : view->draining ? "draining" : view->task_id.empty() ? "idle" : "busy"}];
  }
  // Kinds that no worker ever had are waited for, too.
  std::map<std::string, int> waiting = scheduler_.QueuedTasks();
  for (const auto& [kind, jobs] : awaited_) waiting[kind] += jobs;
  for (const auto& [kind, count] : waiting) reported_kinds_.insert(kind);
  if (workers != reported_workers_ || waiting != reported_waiting_) {
    reported_workers_ = workers, reported_waiting_ = waiting;
    ReportKinds(std::move(workers), std::move(waiting));
  }
  metrics_->Set(Metric::kQueueOldestAge, absl::ToDoubleSeconds(scheduler_.OldestQueuedAge(now)));
  constexpr absl::Duration kPauseOfDisk = absl::Seconds(1);
  if (now - disk_looked_at_ < kPauseOfDisk) return;
  disk_looked_at_ = now;
  metrics_->Set(Metric::kDiskFreeBytes, static_cast<double>(artifacts_->FreeBytes()));
}

void Farm::ReportKinds(std::map<std::pair<std::string, std::string>, int> workers, std::map<std::string, int> waiting) {
  for (const std::string& kind : reported_kinds_) {
    for (const char* state : {"idle", "busy", "draining", "lost"}) {
      metrics_->Set(Metric::kWorkers, workers[{kind, state}], {{"device_class", kind}, {"state", state}});
    }
    metrics_->Set(Metric::kQueueDepth, waiting[kind], {{"device_class", kind}});
  }
}

}  // namespace fusion
