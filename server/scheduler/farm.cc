#include "server/scheduler/farm.h"

#include <algorithm>

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

LogLine TaskLine(LogLevel level, std::string message, const TaskRow& task, const std::string& worker) {
  return {level,
          std::move(message),
          {{"job", task.job}, {"task", task.id}, {"worker", worker}, {"description", task.description}}};
}

}  // namespace

Farm::Farm(Store* store, ArtifactStore* artifacts, Metrics* metrics, ResultAcceptor acceptor, SchedulerConfig config,
           Log log)
    : store_(store),
      artifacts_(artifacts),
      metrics_(metrics),
      acceptor_(std::move(acceptor)),
      log_(std::move(log)),
      scheduler_(config, store->MaxFence().value_or(0)) {}

Farm::~Farm() { Stop(); }

absl::Status Farm::Restore() {
  ASSIGN_OR_RETURN(std::vector<TaskRow> rows, store_->UnfinishedTasks());
  for (TaskRow& row : rows) {
    if (row.state != TaskPhase::kLeased) continue;
    ASSIGN_OR_RETURN(std::optional<WorkerRow> worker, store_->FindWorker(row.worker));
    if (worker.has_value() && IsLocalWorkerName(worker->name)) row.state = TaskPhase::kQueued;
  }
  absl::MutexLock lock(&mutex_);
  for (const TaskRow& row : rows) scheduler_.Restore(row, absl::Now());
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
  scheduler_.Seen(worker.id, OffersOf(worker), false, absl::Now());
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
    if (found == nullptr || !scheduler_.Holds(poll.task_id, poll.fence)) return absl::AbortedError("the lease is over");
    task = *found;
    worker = attached_[poll.worker_id];
  }
  RETURN_IF_ERROR(poll.result.status());
  ASSIGN_OR_RETURN(Artifact artifact, artifacts_->Put(*poll.result));
  RETURN_IF_ERROR(acceptor_(task, *poll.result, worker));
  return artifact.digest;
}

void Farm::Poll(FarmPoll poll) {
  absl::StatusOr<std::string> digest = absl::UnknownError("unset");
  if (poll.finished) digest = TakeResult(poll);
  const absl::Time now = absl::Now();
  std::optional<LogLine> ended;
  absl::ReleasableMutexLock lock(&mutex_);
  if (pump_ended_) {
    lock.Release();
    poll.reply({absl::UnavailableError("the server is shutting down"), std::nullopt, absl::ZeroDuration()});
    return;
  }
  auto attached = attached_.find(poll.worker_id);
  if (attached != attached_.end()) {
    scheduler_.Seen(poll.worker_id, OffersOf(attached->second), poll.draining, now);
  }
  if (poll.finished) {
    const TaskRow* task = scheduler_.Find(poll.task_id);
    if (task != nullptr) {
      ended = digest.ok() ? TaskLine(LogLevel::kDebug, "task done", *task, poll.worker_id)
                          : TaskLine(LogLevel::kWarning, "attempt failed", *task, poll.worker_id);
      if (!digest.ok()) ended->fields.push_back({"error", digest.status().ToString()});
    }
    const std::string kind = task != nullptr && task->kind == TaskType::kMeasure ? "measure" : "build";
    const bool took = digest.ok() ? scheduler_.Complete(poll.task_id, poll.fence, *digest, now)
                                  : scheduler_.Fail(poll.task_id, poll.fence, digest.status(), now);
    if (!took && ended.has_value()) ended->level = LogLevel::kDebug, ended->message = "result of an old lease dropped";
    if (task != nullptr) {
      metrics_->Count(Metric::kTasks, {{"kind", kind},
                                       {"outcome", !took         ? "stale"
                                                   : digest.ok() ? "succeeded"
                                                                 : "failed"}});
    }
  }
  const bool runs = !poll.task_id.empty() && !poll.finished;
  const absl::Time until = runs ? now : now + std::min(poll.max_wait, kMaxHold);
  polls_.push_back({std::move(poll), until});
  Wake();
  lock.Release();
  if (ended.has_value()) log_(*ended);
}

void Farm::HungUp(const std::string& worker_id) {
  absl::MutexLock lock(&mutex_);
  scheduler_.Disconnected(worker_id);
  Wake();
  changed_.SignalAll();
}

void Farm::Pump() {
  bool last = false;
  while (!last) {
    {
      absl::MutexLock lock(&mutex_);
      if (!pump_pending_) pump_wanted_.WaitWithTimeout(&mutex_, kPumpInterval);
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
    const absl::Time now = absl::Now();
    stopping = stopping_;
    scheduler_.Tick(now);
    std::vector<HeldPoll> held;
    for (HeldPoll& entry : polls_) {
      const FarmPoll& poll = entry.poll;
      FarmAnswer answer;
      bool answered = stopping || entry.until <= now || poll.gone->load();
      answer.next_sync = stopping                               ? absl::Seconds(1)
                         : poll.max_wait > absl::ZeroDuration() ? absl::ZeroDuration()
                                                                : scheduler_.config().heartbeat;
      const bool runs = !poll.task_id.empty() && !poll.finished;
      if (runs) {
        if (scheduler_.Renew(poll.worker_id, poll.task_id, poll.fence, now)) {
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
    UpdateMetrics();
  }

  // Nobody may see any effect of this round until its rows are on disk.
  absl::Status saved = store_->PutTasks(rows);
  if (!saved.ok()) {
    log_({LogLevel::kError,
          "cannot store the state of tasks; workers wait until it can be stored",
          {{"error", saved.ToString()}}});
  }
  while (!saved.ok() && !stopping) {
    absl::SleepFor(absl::Seconds(1));
    saved = store_->PutTasks(rows);
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

absl::StatusOr<std::vector<FarmOutcome>> Farm::RunAll(absl::Span<const FarmTask> tasks, const FarmWait& wait) {
  std::vector<FarmOutcome> outcomes(tasks.size());
  std::vector<TaskRow> rows;
  std::vector<std::string> ids;
  // Tasks are added one by one, so that workers start with the first while later payloads are still being written.
  for (const FarmTask& task : tasks) {
    const absl::StatusOr<Artifact> payload = artifacts_->Put(task.payload);
    absl::MutexLock lock(&mutex_);
    if (!payload.ok()) {
      for (size_t i = 0; i < ids.size() && !stopping_; ++i) scheduler_.Release(ids[i], absl::Now());
      Wake();
      return payload.status();
    }
    TaskRow row;
    row.key = task.key, row.kind = task.kind, row.device_kind = task.device_kind, row.requirement = task.requirement;
    row.job = task.job;
    row.description = task.description, row.payload_digest = payload->digest, row.payload_bytes = payload->size_bytes;
    row.timeout_ms = absl::ToInt64Milliseconds(task.timeout), row.threads = task.threads;
    ids.push_back(scheduler_.Add(row, absl::Now()));
    rows.push_back(std::move(row));
    Wake();
  }
  std::vector<std::optional<TaskRow>> finals(tasks.size());
  std::vector<bool> open(tasks.size(), true);
  size_t done = 0, told_done = static_cast<size_t>(-1);
  std::string told_message;
  absl::Time worker_seen = absl::Now();
  absl::Status ended;
  while (done < tasks.size()) {
    std::string message;
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time now = absl::Now();
      bool served = true;
      for (size_t i = 0; i < ids.size(); ++i) {
        if (!open[i]) continue;
        auto final_row = durable_.find(ids[i]);
        if (final_row == durable_.end()) {
          served = served && scheduler_.WorkersThatOffer(rows[i].requirement, now) > 0;
          continue;
        }
        finals[i] = final_row->second;
        open[i] = false;
        ++done;
        scheduler_.Release(ids[i], now);
        if (scheduler_.Find(ids[i]) == nullptr) durable_.erase(ids[i]);
      }
      if (served) {
        worker_seen = now;
      } else {
        message = absl::StrCat("no worker for ", tasks[0].device_kind, "; kinds attached: ", AttachedKindsLocked());
        if (now - worker_seen >= wait.queue_timeout) {
          for (size_t i = 0; i < ids.size(); ++i) {
            if (!open[i]) continue;
            outcomes[i].status = absl::FailedPreconditionError(
                absl::StrCat(message, "; gave up after ", absl::FormatDuration(wait.queue_timeout)));
          }
          break;
        }
      }
      if (stopping_) {
        ended = absl::UnavailableError("the server is shutting down");
        break;
      }
      if (done < tasks.size() && done == told_done && message == told_message) {
        changed_.WaitWithTimeout(&mutex_, absl::Milliseconds(100));
      }
    }
    if (wait.cancelled && wait.cancelled()) {
      ended = absl::CancelledError("cancelled");
      break;
    }
    if (wait.progress && (done != told_done || message != told_message)) {
      wait.progress(static_cast<int64_t>(done), static_cast<int64_t>(tasks.size()), message);
    }
    told_done = done, told_message = message;
  }
  {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (open[i] && !stopping_) scheduler_.Release(ids[i], absl::Now());
      if (scheduler_.Find(ids[i]) == nullptr) durable_.erase(ids[i]);
    }
    Wake();
  }
  RETURN_IF_ERROR(ended);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!finals[i].has_value()) continue;
    outcomes[i].worker = finals[i]->worker;
    if (finals[i]->state == TaskPhase::kDone) {
      absl::StatusOr<std::string> result = artifacts_->Get(finals[i]->result_digest);
      outcomes[i].status = result.status();
      if (result.ok()) outcomes[i].result = *std::move(result);
    } else {
      outcomes[i].status = absl::InternalError(absl::StrCat(tasks[i].description, ": given up after ",
                                                            finals[i]->attempts, " attempts: ", finals[i]->evidence));
    }
  }
  return outcomes;
}

int Farm::WorkersThatOffer(const std::string& requirement) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.WorkersThatOffer(requirement, absl::Now());
}

std::optional<AttachedWorker> Farm::FindDeviceLocked(const std::string& target) const {
  const absl::Time now = absl::Now();
  const Target wanted = ParseTarget(target);
  for (const WorkerView& view : scheduler_.Workers()) {
    auto it = attached_.find(view.id);
    if (it == attached_.end() || view.draining || !scheduler_.IsLive(view, now)) continue;
    if (it->second.measure_kinds.count(wanted.kind) && wanted.IsFor(it->second.device)) return it->second;
  }
  return std::nullopt;
}

std::optional<AttachedWorker> Farm::FindDevice(const std::string& target) const {
  absl::MutexLock lock(&mutex_);
  return FindDeviceLocked(target);
}

std::optional<AttachedWorker> Farm::AwaitDevice(const std::string& target, absl::Duration timeout,
                                                const std::function<bool()>& cancelled) const {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      std::optional<AttachedWorker> found = FindDeviceLocked(target);
      const absl::Time now = absl::Now();
      if (found.has_value() || now >= deadline || stopping_) return found;
      changed_.WaitWithTimeout(&mutex_, std::min(deadline - now, absl::Milliseconds(100)));
    }
    if (cancelled && cancelled()) return std::nullopt;
  }
}

std::string Farm::AttachedKindsLocked() const {
  std::set<std::string> kinds;
  const absl::Time now = absl::Now();
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
  for (const WorkerView& view : scheduler_.Workers()) {
    auto it = attached_.find(view.id);
    if (it == attached_.end()) continue;
    const TaskRow* task = view.task_id.empty() ? nullptr : scheduler_.Find(view.task_id);
    rows.push_back({it->second, view, scheduler_.IsLive(view, absl::Now()), task != nullptr ? task->description : ""});
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
  const absl::Time now = absl::Now();
  for (const WorkerView& view : scheduler_.Workers()) {
    auto it = attached_.find(view.id);
    if (it == attached_.end()) continue;
    const std::string kind = it->second.measure_kinds.empty() ? "none" : it->second.device.kind;
    reported_kinds_.insert(kind);
    const bool live = scheduler_.IsLive(view, now);
    ++workers[{kind, !live ? "lost" : view.draining ? "draining" : view.task_id.empty() ? "idle" : "busy"}];
  }
  for (const std::string& kind : reported_kinds_) {
    for (const char* state : {"idle", "busy", "draining", "lost"}) {
      metrics_->Set(Metric::kWorkers, workers[{kind, state}], {{"device_class", kind}, {"state", state}});
    }
    metrics_->Set(Metric::kQueueDepth, scheduler_.QueuedTasks(kind), {{"device_class", kind}});
  }
  metrics_->Set(Metric::kQueueOldestAge, absl::ToDoubleSeconds(scheduler_.OldestQueuedAge(now)));
  metrics_->Set(Metric::kDbWriteQueueDepth, store_->write_queue_depth());
  metrics_->Set(Metric::kDiskFreeBytes, static_cast<double>(artifacts_->FreeBytes()));
}

}  // namespace fusion
