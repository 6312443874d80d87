#include "server/scheduler/farm.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "server/scheduler/device_rates.h"

namespace fusion {

std::string BuildRequirement(const std::string& kind) { return absl::StrCat("build:", kind); }
std::string TrustedBuildRequirement(const std::string& kind) { return absl::StrCat("build:", kind, ":trusted"); }
std::string FarmBuilder::Requirement() const { return absl::StrCat("build:", kind, ":", toolchain, ":by:", token); }
std::string MeasureRequirement(const std::string& kind, const std::string& fingerprint) {
  return absl::StrCat("measure:", kind, ":", fingerprint);
}
std::string ModelRequirement(const std::string& kind, const std::string& fingerprint) {
  return absl::StrCat("models:", kind, ":", fingerprint);
}

LogLine TaskLine(LogLevel level, std::string message, const TaskRow& task, const std::string& worker) {
  return {level,
          std::move(message),
          {{"job", task.job}, {"task", task.id}, {"worker", worker}, {"description", task.description}}};
}

std::string LocalWorkerName(const std::string& kind) { return kind == "cpu" ? "local" : absl::StrCat("local-", kind); }
bool IsLocalWorkerName(const std::string& name) { return name == "local" || absl::StartsWith(name, "local-"); }

namespace {

std::set<std::string> OffersOf(const AttachedWorker& worker) {
  std::set<std::string> offers;
  for (const std::string& kind : worker.toolchain_kinds) {
    offers.insert(BuildRequirement(kind));
    if (worker.trusted_builds) offers.insert(TrustedBuildRequirement(kind));
    offers.insert(FarmBuilder{kind, worker.token, worker.ToolchainOf(kind).digest}.Requirement());
  }
  for (const std::string& kind : worker.measure_kinds) {
    offers.insert(MeasureRequirement(kind, worker.fingerprint));
    if (worker.protocol >= kFirstProtocolOfModels) offers.insert(ModelRequirement(kind, worker.fingerprint));
  }
  return offers;
}

constexpr absl::Duration kMaxHold = absl::Seconds(50);

}  // namespace

Farm::Farm(Store* store, ArtifactStore* artifacts, Metrics* metrics, ResultAcceptor acceptor, SchedulerConfig config,
           Log log, SteadyClock clock, Threads* threads)
    : store_(store),
      artifacts_(artifacts),
      metrics_(metrics),
      acceptor_(std::move(acceptor)),
      log_(std::move(log)),
      clock_(std::move(clock)),
      threads_(threads),
      scheduler_(config, 0),
      draw_([bits = std::make_shared<absl::BitGen>()] { return absl::Bernoulli(*bits, Judge::kLot); }),
      judge_([this] { return draw_(); }),
      last_tick_(clock_()) {}

Farm::~Farm() { Stop(); }

absl::Status Farm::Restore() {
  ASSIGN_OR_RETURN(const int64_t last_fence, store_->LastFence());
  ASSIGN_OR_RETURN(std::vector<TaskRow> rows, store_->UnfinishedTasks());
  const std::vector<TaskRow> as_stored = rows;
  for (TaskRow& row : rows) {
    if (row.state != TaskPhase::kLeased) continue;
    ASSIGN_OR_RETURN(std::optional<WorkerRow> worker, store_->FindWorker(row.worker));
    if (worker.has_value() && IsLocalWorkerName(worker->name)) row.state = TaskPhase::kQueued;
  }
  std::vector<std::string> payloads;
  for (const TaskRow& row : rows) payloads.push_back(row.payload_digest);
  artifacts_->payloads().KeepOnly(payloads);
  ASSIGN_OR_RETURN(const std::vector<DrainedWorkerRow> drained, store_->DrainedWorkers());
  ASSIGN_OR_RETURN(const std::vector<SourceRow> sources, store_->Sources());
  absl::MutexLock lock(&mutex_);
  for (const DrainedWorkerRow& worker : drained) drained_[worker.name] = worker;
  for (const SourceRow& source : sources) {
    if (!IsQuarantined(source.source)) judge_.Restore(source);
  }
  scheduler_.StartAfter(last_fence);
  for (size_t i = 0; i < rows.size(); ++i) {
    const TaskRow& row = rows[i];
    stored_.Restore(as_stored[i], clock_());
    scheduler_.Restore(row, clock_());
    if (artifacts_->payloads().Find(row.payload_digest).has_value()) payload_of_[row.id] = row.payload_digest;
  }
  return absl::OkStatus();
}

void Farm::Start() {
  thread_ = threads_->Start([this] { Pump(); });
}

void Farm::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    Wake();
    changed_.SignalAll();
  }
  if (thread_ != nullptr) thread_->Join();
  thread_.reset();
}

void Farm::Wake() {
  pump_pending_ = true;
  pump_wanted_.Signal();
}

absl::Status Farm::Register(AttachedWorker worker) {
  {
    // A worker whose id another one knows keeps its leases, and what it builds is held to be its own.
    absl::MutexLock lock(&mutex_);
    const auto known = attached_.find(worker.id);
    if (known != attached_.end() && known->second.token != worker.token) {
      return absl::PermissionDeniedError("a worker with another token has this id; workers draw theirs at random");
    }
  }
  const int64_t now_ms = absl::ToUnixMillis(absl::Now());
  RETURN_IF_ERROR(store_->PutWorker({worker.id, worker.name, worker.device.kind, worker.fingerprint,
                                     DeviceModelToJson(worker.device), now_ms, worker.source}));
  log_({LogLevel::kInfo,
        "worker attached",
        {{"worker", worker.id},
         {"name", worker.name},
         {"version", worker.version},
         {"measures", absl::StrJoin(worker.measure_kinds, ",")},
         {"builds", absl::StrJoin(worker.toolchain_kinds, ",")}}});
  absl::MutexLock lock(&mutex_);
  scheduler_.Seen(worker.id, OffersOf(worker), false, clock_());
  scheduler_.SetSource(worker.id, worker.source);
  const std::string name = worker.name, source = worker.source;
  CompareRates(worker);
  attached_[worker.id] = std::move(worker);
  ApplyDrain(name);
  if (!source.empty()) ApplyDrain(source);
  return absl::OkStatus();
}

void Farm::CompareRates(const AttachedWorker& worker) {
  rates_differ_.erase(worker.id);
  if (worker.measure_kinds.empty()) return;
  for (const auto& [id, other] : attached_) {
    if (id == worker.id || other.fingerprint != worker.fingerprint || other.measure_kinds.empty() ||
        (other.source == worker.source && other.name == worker.name)) {
      continue;
    }
    const std::string words = RatesThatDiffer(worker.device, other.device);
    if (words.empty()) continue;
    rates_differ_[worker.id] = absl::StrCat("its device has ", words, ", as '", other.name, "' says");
    log_({LogLevel::kWarning,
          "rates of a device differ from those that another worker of its kind measured",
          {{"worker", worker.name}, {"other", other.name}, {"rates", words}}});
    return;
  }
}

bool Farm::IsRegistered(const std::string& worker_id, const std::string& info, const std::string& token) const {
  absl::MutexLock lock(&mutex_);
  auto it = attached_.find(worker_id);
  return it != attached_.end() && it->second.info == info && it->second.token == token;
}

std::string Farm::JobOf(const std::string& worker_id, const std::string& task_id, int64_t fence) const {
  absl::MutexLock lock(&mutex_);
  return scheduler_.Holds(worker_id, task_id, fence) ? scheduler_.Find(task_id)->job : "";
}

struct Farm::Delivery {
  absl::Status status;
  Accepted accepted = {};
  std::string source = {};
  bool remarkable = false;  // as in Opinion
  // The payload cannot be read, so that nothing can be said of the attempt.
  bool payload_lost = false;
};

Farm::Delivery Farm::TakeResult(const FarmPoll& poll) {
  TaskRow task;
  AttachedWorker worker;
  {
    absl::MutexLock lock(&mutex_);
    const TaskRow* found = scheduler_.Find(poll.task_id);
    if (found == nullptr || !scheduler_.Holds(poll.worker_id, poll.task_id, poll.fence)) {
      return {absl::AbortedError("the lease is over")};
    }
    task = *found;
    worker = attached_[poll.worker_id];
  }
  // The worker may have described itself anew since it took the task.
  if (OffersOf(worker).count(task.requirement) == 0) {
    return {absl::UnavailableError(absl::StrCat("the worker no longer offers '", task.requirement, "'"))};
  }
  // A worker that could not read the payload says UNAVAILABLE.
  if (!poll.result.ok() && !absl::IsUnavailable(poll.result.status())) return {poll.result.status()};
  const absl::StatusOr<std::string> payload = artifacts_->Get(task.payload_digest);
  if (!payload.ok()) return {.status = payload.status(), .payload_lost = true};
  if (!poll.result.ok()) return {poll.result.status()};
  absl::StatusOr<Accepted> accepted = acceptor_(task, *payload, *poll.result, worker);
  if (!accepted.ok()) return {accepted.status()};
  Delivery delivery{absl::OkStatus(), *std::move(accepted), worker.source};
  if (worker.source.empty()) return delivery;
  for (const MeasurementRow& row : delivery.accepted.rows.measurements) {
    if (row.workload.empty()) continue;
    const absl::StatusOr<std::vector<TrialRow>> trials = store_->Trials(row.workload);
    if (!trials.ok()) return {trials.status()};
    delivery.remarkable = delivery.remarkable ||
                          (!trials->empty() && std::all_of(trials->begin(), trials->end(), [&](const TrialRow& trial) {
                            return row.median_ns < trial.latency_ns;
                          }));
  }
  return delivery;
}

void Farm::Take(const std::string& task_id, std::vector<Opinion> opinions) {
  const auto append = [](auto& all, auto& some) { std::move(some.begin(), some.end(), std::back_inserter(all)); };
  for (Opinion& opinion : opinions) {
    AcceptedRows& rows = opinion.accepted.rows;
    AcceptedRows& accepted = accepted_[task_id];
    append(accepted.measurements, rows.measurements);
    append(accepted.comparisons, rows.comparisons);
    append(accepted.builds, rows.builds);
  }
  results_[task_id] = std::make_shared<const std::string>(std::move(opinions.back().result));
}

bool Farm::FollowJudge(FarmPoll* poll, Delivery* delivery, const TaskRow& task, absl::Time now, LogLine* line) {
  const std::string id = poll->task_id, worker = poll->worker_id;
  if (!scheduler_.Holds(worker, id, poll->fence)) return false;
  const AcceptedRows& rows = delivery->accepted.rows;
  const bool has_rows = !rows.measurements.empty() || !rows.comparisons.empty();
  Opinion opinion{delivery->source, worker, std::move(delivery->accepted), *std::move(poll->result),
                  delivery->remarkable};
  Verdict verdict;
  if (task.kind == TaskType::kMeasure && IsQuarantined(delivery->source)) {
    verdict = {Verdict::Say::kRefuse, {}, "it is in quarantine"};
  } else if (!has_rows) {  // builds, and runs of whole models, have no rows to judge
    verdict.taken.push_back(std::move(opinion));
  } else {
    verdict = judge_.Hear(id, absl::StrCat(task.requirement, " ", task.threads), std::move(opinion),
                          scheduler_.AnotherMay(id, now));
  }
  const char* outcome = "succeeded";
  switch (verdict.say) {
    case Verdict::Say::kTake:
      Take(id, std::move(verdict.taken));
      (void)scheduler_.Complete(worker, id, poll->fence, now);
      break;
    case Verdict::Say::kAgain:
      outcome = "unconfirmed";
      (void)scheduler_.Again(worker, id, poll->fence, verdict.why, false, now);
      line->message = "measurement awaits a second opinion";
      break;
    case Verdict::Say::kRefuse:
    case Verdict::Say::kNone:
      outcome = "refused";
      (void)scheduler_.Again(worker, id, poll->fence, verdict.why, true, now);
      if (verdict.say == Verdict::Say::kNone) scheduler_.GiveUpQueued(id, verdict.why, now);
      line->level = LogLevel::kWarning, line->message = "measurement refused";
      break;
    case Verdict::Say::kRetry:
      outcome = "refused";
      (void)scheduler_.Fail(worker, id, poll->fence, absl::UnavailableError(verdict.why), now);
      line->level = LogLevel::kWarning, line->message = "measurement refused";
      break;
  }
  if (!verdict.why.empty()) line->fields.push_back({"why", verdict.why});
  metrics_->Count(Metric::kTasks,
                  {{"kind", task.kind == TaskType::kMeasure ? "measure" : "build"}, {"outcome", outcome}});
  return true;
}

void Farm::SettleStranded(absl::Time now) {
  for (const std::string& id : judge_.Waiting()) {
    const TaskRow* task = scheduler_.Find(id);
    if (task == nullptr || task->state > TaskPhase::kLeased) {
      judge_.Forget(id);
    } else if (judge_.HasHeard(id) && scheduler_.IsStranded(id, now)) {
      Verdict verdict = judge_.Settle(id);
      if (verdict.say != Verdict::Say::kTake) {
        judge_.Forget(id);
        scheduler_.GiveUpQueued(id, verdict.why, now);
        continue;
      }
      const std::string worker = verdict.taken.back().worker;
      Take(id, std::move(verdict.taken));
      scheduler_.CompleteQueued(id, worker, now);
    }
  }
}

Farm::Checks Farm::ChecksFor(const std::string& requirement, int threads) const {
  absl::MutexLock lock(&mutex_);
  for (const WorkerView* view : scheduler_.Workers()) {
    const auto worker = attached_.find(view->id);
    if (worker == attached_.end() || worker->second.source.empty() || view->offers.count(requirement) == 0) continue;
    return {true, judge_.SentinelOf(absl::StrCat(requirement, " ", threads))};
  }
  return {};
}

absl::Status Farm::KnowImports(const std::set<std::string>& believed, const std::string& by) {
  ASSIGN_OR_RETURN(const std::vector<SourceRow> sources, store_->Sources());
  std::vector<std::string> known;
  {
    absl::MutexLock lock(&mutex_);
    for (const SourceRow& source : sources) {
      if (absl::StartsWith(source.source, kImportedSource) && !IsQuarantined(source.source) &&
          !judge_.Knows(source.source)) {
        judge_.Restore(source);
      }
    }
    for (const std::string& source : believed) {
      if (!judge_.Knows(source)) continue;
      judge_.Believe(source);
      known.push_back(source);
    }
    if (!known.empty()) Wake();  // it is stored in the next round
  }
  if (known.empty()) return absl::OkStatus();
  log_({LogLevel::kInfo,
        "audit",
        {{"call", "/fusion.v1.Profile/Import"}, {"by", by}, {"believes", absl::StrJoin(known, ", ")}}});
  return absl::OkStatus();
}

std::string Farm::SourceOfWorker(const std::string& worker_id) const {
  absl::MutexLock lock(&mutex_);
  const auto worker = attached_.find(worker_id);
  return worker == attached_.end() ? "" : worker->second.source;
}

std::set<std::string> Farm::DoubtedImports() const {
  absl::MutexLock lock(&mutex_);
  return judge_.DoubtedImports();
}

std::set<std::string> Farm::ImportsToCheck(const std::string& requirement) const {
  absl::MutexLock lock(&mutex_);
  std::set<std::string> doubted = judge_.DoubtedImports();
  if (!doubted.empty() && scheduler_.WorkersThatOffer(requirement, clock_()) == 0) doubted.clear();
  return doubted;
}

int Farm::ConfirmedInARow(const std::string& source) const {
  absl::MutexLock lock(&mutex_);
  return judge_.ConfirmedInARow(source);
}

void Farm::CompareImport(const std::string& source, const std::string& description, double imported, double measured,
                         double tolerance, bool is_firm) {
  std::optional<DueQuarantine> due;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_();
    const auto before = differed_at_.find(source);
    const bool may_strike = is_firm && (before == differed_at_.end() || now - before->second >= kBetweenDifferences);
    const int64_t strikes = judge_.Strikes(source);
    due = judge_.CompareImport(source, description, imported, measured, tolerance, may_strike);
    if (due.has_value() || judge_.Strikes(source) > strikes) differed_at_[source] = now;
    Wake();  // what is known now is stored in the next round
  }
  if (!due.has_value()) return;
  const absl::Status done = QuarantineDue(*due);
  if (done.ok()) return;
  absl::MutexLock lock(&mutex_);
  judge_.TryAgain(*due);
}

std::optional<LogLine> Farm::EndLease(FarmPoll* poll, Delivery delivery, absl::Time now) {
  const TaskRow* task = scheduler_.Find(poll->task_id);
  if (task == nullptr) return std::nullopt;
  const bool done = delivery.status.ok();
  const std::string kind = task->kind == TaskType::kMeasure ? "measure" : "build";
  LogLine line = done                    ? TaskLine(LogLevel::kDebug, "task done", *task, poll->worker_id)
                 : delivery.payload_lost ? TaskLine(LogLevel::kWarning, "payload lost", *task, poll->worker_id)
                                         : TaskLine(LogLevel::kWarning, "attempt failed", *task, poll->worker_id);
  if (!done) line.fields.push_back({"error", delivery.status.ToString()});
  bool took = false;
  if (done) {
    const TaskRow ended = *task;  // the judge's word changes it
    took = FollowJudge(poll, &delivery, ended, now, &line);
  } else {
    took = delivery.payload_lost ? scheduler_.LosePayload(poll->worker_id, poll->task_id, poll->fence, now)
                                 : scheduler_.Fail(poll->worker_id, poll->task_id, poll->fence, delivery.status, now);
  }
  if (!took) line.level = LogLevel::kDebug, line.message = "result of an old lease dropped";
  if (took && done) return line;
  metrics_->Count(Metric::kTasks, {{"kind", kind},
                                   {"outcome", !took                   ? "stale"
                                               : delivery.payload_lost ? "payload_lost"
                                                                       : "failed"}});
  return line;
}

void Farm::Poll(FarmPoll poll) {
  Delivery delivery;
  if (poll.finished) delivery = TakeResult(poll);
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
  if (poll.finished) ended = EndLease(&poll, std::move(delivery), now);
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
  hung_up_ = true;
  Wake();
  const auto latest = latest_call_.find(worker_id);
  if (latest == latest_call_.end() || latest->second != gone) return;
  latest_call_.erase(latest);
  scheduler_.Disconnected(worker_id, clock_());
  changed_.SignalAll();
}

}  // namespace fusion
