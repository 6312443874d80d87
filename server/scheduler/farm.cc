#include "server/scheduler/farm.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/cost/target.h"
#include "runtime/base/status_macros.h"

namespace fusion {

std::string BuildRequirement(const std::string& kind) { return absl::StrCat("build:", kind); }
std::string MeasureRequirement(const std::string& kind, const std::string& fingerprint) {
  return absl::StrCat("measure:", kind, ":", fingerprint);
}

std::string LocalWorkerName(const std::string& kind) { return kind == "cpu" ? "local" : absl::StrCat("local-", kind); }
bool IsLocalWorkerName(const std::string& name) { return name == "local" || absl::StartsWith(name, "local-"); }

namespace {

std::set<std::string> OffersOf(const AttachedWorker& worker) {
  std::set<std::string> offers;
  for (const std::string& kind : worker.toolchain_kinds) offers.insert(BuildRequirement(kind));
  for (const std::string& kind : worker.measure_kinds) offers.insert(MeasureRequirement(kind, worker.fingerprint));
  return offers;
}

constexpr absl::Duration kMaxHold = absl::Seconds(50);
constexpr absl::Duration kPumpInterval = absl::Milliseconds(250);

// Adds up the time between looks. A machine that stood still between two of them has not waited for a worker.
class AwakeTime {
 public:
  explicit AwakeTime(absl::Time now) : last_(now) {}
  void Look(absl::Time now) {
    passed_ += std::min(now - last_, absl::Seconds(1));
    last_ = now;
  }
  absl::Duration passed() const { return passed_; }

 private:
  absl::Time last_;
  absl::Duration passed_;
};

LogLine TaskLine(LogLevel level, std::string message, const TaskRow& task, const std::string& worker) {
  return {level,
          std::move(message),
          {{"job", task.job}, {"task", task.id}, {"worker", worker}, {"description", task.description}}};
}

}  // namespace

Farm::Farm(Store* store, ArtifactStore* artifacts, Metrics* metrics, ResultAcceptor acceptor, SchedulerConfig config,
           Log log, SteadyClock clock)
    : store_(store),
      artifacts_(artifacts),
      metrics_(metrics),
      acceptor_(std::move(acceptor)),
      log_(std::move(log)),
      clock_(std::move(clock)),
      scheduler_(config, 0),
      last_tick_(clock_()) {}

Farm::~Farm() { Stop(); }

absl::Status Farm::Restore() {
  ASSIGN_OR_RETURN(const int64_t last_fence, store_->LastFence());
  ASSIGN_OR_RETURN(std::vector<TaskRow> rows, store_->UnfinishedTasks());
  for (TaskRow& row : rows) {
    if (row.state != TaskPhase::kLeased) continue;
    ASSIGN_OR_RETURN(std::optional<WorkerRow> worker, store_->FindWorker(row.worker));
    if (worker.has_value() && IsLocalWorkerName(worker->name)) row.state = TaskPhase::kQueued;
  }
  absl::MutexLock lock(&mutex_);
  scheduler_.StartAfter(last_fence);
  for (const TaskRow& row : rows) scheduler_.Restore(row, clock_());
  return absl::OkStatus();
}

void Farm::Start() {
  thread_ = std::thread([this] { Pump(); });
}

void Farm::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    Wake();
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Farm::Wake() {
  pump_pending_ = true;
  pump_wanted_.Signal();
}

absl::Status Farm::Register(AttachedWorker worker) {
  const int64_t now_ms = absl::ToUnixMillis(absl::Now());
  RETURN_IF_ERROR(store_->PutWorker(
      {worker.id, worker.name, worker.device.kind, worker.fingerprint, DeviceModelToJson(worker.device), now_ms}));
  log_({LogLevel::kInfo,
        "worker attached",
        {{"worker", worker.id},
         {"name", worker.name},
         {"version", worker.version},
         {"measures", absl::StrJoin(worker.measure_kinds, ",")},
         {"builds", absl::StrJoin(worker.toolchain_kinds, ",")}}});
  absl::MutexLock lock(&mutex_);
  scheduler_.Seen(worker.id, OffersOf(worker), false, clock_());
  attached_[worker.id] = std::move(worker);
  changed_.SignalAll();
  return absl::OkStatus();
}

bool Farm::IsRegistered(const std::string& worker_id, const std::string& info) const {
  absl::MutexLock lock(&mutex_);
  auto it = attached_.find(worker_id);
  return it != attached_.end() && it->second.info == info;
}

absl::StatusOr<std::string> Farm::TakeResult(const FarmPoll& poll) {
  TaskRow task;
  AttachedWorker worker;
  {
    absl::MutexLock lock(&mutex_);
    const TaskRow* found = scheduler_.Find(poll.task_id);
    if (found == nullptr || !scheduler_.Holds(poll.worker_id, poll.task_id, poll.fence)) {
      return absl::AbortedError("the lease is over");
    }
    task = *found;
    worker = attached_[poll.worker_id];
  }
  // The worker may have described itself anew since it took the task.
  if (OffersOf(worker).count(task.requirement) == 0) {
    return absl::UnavailableError(absl::StrCat("the worker no longer offers '", task.requirement, "'"));
  }
  RETURN_IF_ERROR(poll.result.status());
  ASSIGN_OR_RETURN(Artifact artifact, artifacts_->Put(*poll.result));
  RETURN_IF_ERROR(acceptor_(task, *poll.result, worker));
  return artifact.digest;
}

void Farm::Poll(FarmPoll poll) {
  absl::StatusOr<std::string> digest = absl::UnknownError("unset");
  if (poll.finished) digest = TakeResult(poll);
  const absl::Time now = clock_();
  std::optional<LogLine> ended;
  absl::ReleasableMutexLock lock(&mutex_);
  if (pump_ended_) {
    lock.Release();
    poll.reply({absl::UnavailableError("the server is shutting down"), std::nullopt, absl::ZeroDuration()});
    return;
  }
  auto attached = attached_.find(poll.worker_id);
  // HungUp comes after `gone` is set and waits for the lock, so that either it or this sees the other.
  if (attached != attached_.end() && !poll.gone->load()) {
    scheduler_.Seen(poll.worker_id, OffersOf(attached->second), poll.draining, now);
    latest_call_[poll.worker_id] = poll.gone;
  }
  if (poll.finished) {
    const TaskRow* task = scheduler_.Find(poll.task_id);
    if (task != nullptr) {
      ended = digest.ok() ? TaskLine(LogLevel::kDebug, "task done", *task, poll.worker_id)
                          : TaskLine(LogLevel::kWarning, "attempt failed", *task, poll.worker_id);
      if (!digest.ok()) ended->fields.push_back({"error", digest.status().ToString()});
    }
    const std::string kind = task != nullptr && task->kind == TaskType::kMeasure ? "measure" : "build";
    const bool took = digest.ok() ? scheduler_.Complete(poll.worker_id, poll.task_id, poll.fence, *digest, now)
                                  : scheduler_.Fail(poll.worker_id, poll.task_id, poll.fence, digest.status(), now);
    if (!took && ended.has_value()) ended->level = LogLevel::kDebug, ended->message = "result of an old lease dropped";
    if (task != nullptr) {
      metrics_->Count(Metric::kTasks, {{"kind", kind},
                                       {"outcome", !took         ? "stale"
                                                   : digest.ok() ? "succeeded"
                                                                 : "failed"}});
    }
  }
  const bool runs = !poll.task_id.empty() && !poll.finished;
  // At once: the pump may be waiting for the disk.
  if (runs) (void)scheduler_.Renew(poll.worker_id, poll.task_id, poll.fence, poll.stage, now);
  const absl::Time until = runs ? now : now + std::min(poll.max_wait, kMaxHold);
  polls_.push_back({std::move(poll), until});
  Wake();
  lock.Release();
  if (ended.has_value()) log_(*ended);
}

void Farm::HungUp(const std::string& worker_id, const std::shared_ptr<std::atomic<bool>>& gone) {
  absl::MutexLock lock(&mutex_);
  Wake();
  const auto latest = latest_call_.find(worker_id);
  if (latest == latest_call_.end() || latest->second != gone) return;
  latest_call_.erase(latest);
  scheduler_.Disconnected(worker_id);
  changed_.SignalAll();
}

void Farm::Pump() {
  bool last = false;
  while (!last) {
    {
      absl::MutexLock lock(&mutex_);
      if (!pump_pending_) pump_wanted_.WaitFor(&mutex_, kPumpInterval);
      pump_pending_ = false;
      // The last round answers every poll that is held. Later polls are refused at once, so that workers that ask again
      // without a pause cannot keep the server from stopping.
      last = pump_ended_ = stopping_;
    }
    PumpOnce();
  }
}

void Farm::PumpOnce() {
  std::vector<std::pair<std::function<void(const FarmAnswer&)>, FarmAnswer>> answers;
  std::vector<TaskRow> rows;
  std::vector<LogLine> leased;
  bool stopping;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_();
    stopping = stopping_;
    // This round may be late, because the store or the machine stood still. Whatever has arrived meanwhile counts
    // first, and nobody loses a lease for calls that this server could not take.
    if (const absl::Duration late = now - last_tick_; late > scheduler_.config().heartbeat) scheduler_.Extend(late);
    last_tick_ = now;
    std::vector<bool> renewed;
    for (const HeldPoll& entry : polls_) {
      const FarmPoll& poll = entry.poll;
      const bool runs = !poll.task_id.empty() && !poll.finished;
      renewed.push_back(runs && scheduler_.Renew(poll.worker_id, poll.task_id, poll.fence, poll.stage, now));
    }
    scheduler_.Tick(now);
    std::vector<HeldPoll> held;
    size_t position = 0;
    for (HeldPoll& entry : polls_) {
      const FarmPoll& poll = entry.poll;
      const bool was_renewed = renewed[position++];
      FarmAnswer answer;
      bool answered = stopping || entry.until <= now || poll.gone->load();
      answer.next_sync = stopping                               ? absl::Seconds(1)
                         : poll.max_wait > absl::ZeroDuration() ? absl::ZeroDuration()
                                                                : scheduler_.config().heartbeat;
      const bool runs = !poll.task_id.empty() && !poll.finished;
      if (runs) {
        if (was_renewed && scheduler_.Holds(poll.worker_id, poll.task_id, poll.fence)) {
          answer.task = *scheduler_.Find(poll.task_id);
        }
      } else if (!stopping && !poll.gone->load()) {
        answer.task = scheduler_.Assign(poll.worker_id, now);
        if (answer.task.has_value()) {
          leased.push_back(TaskLine(LogLevel::kDebug, "task leased", *answer.task, poll.worker_id));
        }
      }
      if (answer.task.has_value()) {
        answered = true;
        answer.next_sync = scheduler_.config().heartbeat;
      }
      if (answered) {
        answers.emplace_back(std::move(entry.poll.reply), std::move(answer));
      } else {
        held.push_back(std::move(entry));
      }
    }
    polls_ = std::move(held);
    rows = scheduler_.TakeChanged();
    const int64_t wall_ms = absl::ToUnixMillis(absl::Now());
    for (TaskRow& row : rows) row.updated_ms = wall_ms;
    UpdateMetrics();
  }

  // Nobody may see any effect of this round until its rows are on disk.
  absl::Status saved = store_->PutTasks(rows);
  if (observer_) observer_(saved);
  if (!saved.ok()) {
    log_({LogLevel::kError,
          "cannot store the state of tasks; workers wait until it can be stored",
          {{"error", saved.ToString()}}});
  }
  while (!saved.ok() && !stopping) {
    absl::SleepFor(absl::Seconds(1));
    saved = store_->PutTasks(rows);
    if (observer_) observer_(saved);
    absl::MutexLock lock(&mutex_);
    stopping = stopping_;
  }
  for (const LogLine& line : leased) log_(line);
  for (auto& [reply, answer] : answers) {
    if (!saved.ok()) answer.status = saved;
    reply(answer);
  }
  if (rows.empty()) return;
  absl::MutexLock lock(&mutex_);
  for (TaskRow& row : rows) {
    if (saved.ok() && row.state > TaskPhase::kLeased && scheduler_.Find(row.id) != nullptr) durable_[row.id] = row;
  }
  changed_.SignalAll();
}

// The tasks of one RunAll.
struct Farm::Batch {
  absl::Span<const FarmTask> tasks;
  // Parallel to `tasks`:
  std::vector<std::string> ids;
  std::vector<TaskRow> rows;                   // as they were added
  std::vector<std::optional<TaskRow>> finals;  // the stored final row, once there is one
  size_t done = 0;                             // tasks with a final row
  absl::Status given_up;                       // why the others have none
};

// Tasks are added one by one, so that workers start with the first while later payloads are still being written.
absl::Status Farm::AddTasks(Batch* batch) {
  for (const FarmTask& task : batch->tasks) {
    const absl::StatusOr<Artifact> payload = artifacts_->Put(task.payload);
    absl::MutexLock lock(&mutex_);
    if (!payload.ok()) {
      for (size_t i = 0; i < batch->ids.size() && !stopping_; ++i) scheduler_.Release(batch->ids[i], clock_());
      Wake();
      return payload.status();
    }
    TaskRow row;
    row.key = task.key, row.kind = task.kind, row.device_kind = task.device_kind, row.requirement = task.requirement;
    row.job = task.job;
    row.description = task.description, row.payload_digest = payload->digest, row.payload_bytes = payload->size_bytes;
    row.timeout_ms = absl::ToInt64Milliseconds(task.timeout), row.threads = task.threads;
    row.created_ms = absl::ToUnixMillis(absl::Now());
    batch->ids.push_back(scheduler_.Add(row, clock_()));
    batch->rows.push_back(std::move(row));
    Wake();
  }
  batch->finals.resize(batch->tasks.size());
  return absl::OkStatus();
}

bool Farm::TakeFinals(absl::Time now, Batch* batch) {
  bool served = true;
  for (size_t i = 0; i < batch->ids.size(); ++i) {
    if (batch->finals[i].has_value()) continue;
    const auto final_row = durable_.find(batch->ids[i]);
    if (final_row == durable_.end()) {
      served = served && scheduler_.WorkersThatOffer(batch->rows[i].requirement, now) > 0;
      continue;
    }
    batch->finals[i] = final_row->second;
    ++batch->done;
    scheduler_.Release(batch->ids[i], now);
    if (scheduler_.Find(batch->ids[i]) == nullptr) durable_.erase(batch->ids[i]);
  }
  return served;
}

absl::Status Farm::AwaitFinals(const FarmWait& wait, Batch* batch) {
  const size_t all = batch->tasks.size();
  size_t told_done = static_cast<size_t>(-1);
  std::string told_message;
  AwakeTime unserved(clock_());
  bool away = false;
  const auto tell_away = [&](bool now_away) {
    if (wait.away && away != now_away) wait.away(away = now_away);
  };
  const auto come_back = absl::MakeCleanup([&] { tell_away(false); });
  while (batch->done < all) {
    std::string message;
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time now = clock_();
      unserved.Look(now);
      if (TakeFinals(now, batch)) {
        unserved = AwakeTime(now);
      } else {
        message =
            absl::StrCat("no worker for ", batch->tasks[0].device_kind, "; kinds attached: ", AttachedKindsLocked());
        if (unserved.passed() >= wait.queue_timeout) {
          batch->given_up = absl::FailedPreconditionError(
              absl::StrCat(message, "; gave up after ", absl::FormatDuration(wait.queue_timeout)));
          return absl::OkStatus();
        }
      }
      if (stopping_) return absl::UnavailableError("the server is shutting down");
      if (batch->done < all && batch->done == told_done && message == told_message) {
        changed_.WaitFor(&mutex_, absl::Milliseconds(100));
      }
    }
    tell_away(!message.empty());
    if (wait.cancelled && wait.cancelled()) return absl::CancelledError("cancelled");
    if (wait.progress && (batch->done != told_done || message != told_message)) {
      wait.progress(static_cast<int64_t>(batch->done), static_cast<int64_t>(all), message);
    }
    told_done = batch->done, told_message = message;
  }
  return absl::OkStatus();
}

void Farm::ReleaseTasks(const Batch& batch) {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    if (!batch.finals[i].has_value() && !stopping_) scheduler_.Release(batch.ids[i], clock_());
    if (scheduler_.Find(batch.ids[i]) == nullptr) durable_.erase(batch.ids[i]);
  }
  Wake();
}

FarmOutcome Farm::OutcomeOf(const FarmTask& task, const TaskRow& final_row) const {
  FarmOutcome outcome;
  outcome.worker = final_row.worker;
  if (final_row.state != TaskPhase::kDone) {
    outcome.status = absl::InternalError(
        absl::StrCat(task.description, ": given up after ", final_row.attempts, " attempts: ", final_row.evidence));
    return outcome;
  }
  absl::StatusOr<std::string> result = artifacts_->Get(final_row.result_digest);
  outcome.status = result.status();
  if (result.ok()) outcome.result = *std::move(result);
  return outcome;
}

absl::StatusOr<std::vector<FarmOutcome>> Farm::RunAll(absl::Span<const FarmTask> tasks, const FarmWait& wait) {
  Batch batch{tasks};
  RETURN_IF_ERROR(AddTasks(&batch));
  const absl::Status ended = AwaitFinals(wait, &batch);
  ReleaseTasks(batch);
  RETURN_IF_ERROR(ended);
  std::vector<FarmOutcome> outcomes(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (batch.finals[i].has_value()) {
      outcomes[i] = OutcomeOf(tasks[i], *batch.finals[i]);
    } else {
      outcomes[i].status = batch.given_up;
    }
  }
  return outcomes;
}

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
