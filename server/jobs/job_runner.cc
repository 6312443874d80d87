#include "server/jobs/job_runner.h"

#include <algorithm>
#include <filesystem>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/cost/target.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "server/compile_process/compile_process.h"
#include "server/jobs/job_logs.h"
#include "server/jobs/job_messages.h"
#include "server/jobs/progress_throttle.h"

namespace fusion {
JobRunner::JobRunner(JobRunnerOptions options, CompilerFunctions compiler, Store* store, ArtifactStore* artifacts,
                     Farm* farm, Metrics* metrics)
    : options_(std::move(options)),
      compiler_(std::move(compiler)),
      store_(store),
      artifacts_(artifacts),
      farm_(farm),
      metrics_(metrics),
      started_(options_.clock()),
      claimant_(NewTraceId()),
      parked_time_(started_) {}

JobRunner::~JobRunner() { Stop(); }

void JobRunner::BeginLog(const std::string& job_id, const std::string& trace) {
  if (options_.logs != nullptr) options_.logs->Begin(job_id, trace.empty() ? NewTraceId() : trace);
}

void JobRunner::EndLog(const std::string& job_id) {
  if (options_.logs != nullptr) options_.logs->End(job_id);
}

absl::Status JobRunner::DiedError(const JobRow& job, int attempts, const std::string& evidence) {
  v1::SubmitRequest request;
  request.ParseFromString(job.request);
  std::string digests;
  if (request.files_size() > 0) digests = absl::StrJoin(request.files(0).chunk_digests(), " ").substr(0, 1000);
  return absl::InternalError(absl::StrCat(evidence, ". The job is not tried again after ", attempts,
                                          " attempts; target: ", job.target, "; key: ", job.key,
                                          "; chunks of the model: ", digests));
}

// The server died before it could store the end.
absl::Status JobRunner::GiveUp(const JobRow& job) {
  ASSIGN_OR_RETURN(const std::vector<JobEventRow> events, store_->JobEvents(job.id, job.last_seq - 1, 1));
  v1::JobEvent last;
  if (!events.empty()) last.ParseFromString(events.back().event);
  const absl::Status finished = Finish(job, DiedError(job, job.attempts, last.message()), {}, std::nullopt);
  EndLog(job.id);
  return finished;
}

void JobRunner::Start() {
  threads_.push_back(options_.threads->Start([this] { ExpireLoop(); }));
  threads_.push_back(options_.threads->Start([this] { ClaimsLoop(); }));
  threads_.push_back(options_.threads->Start([this] { ParkedLoop(); }));
  for (int i = 0; i < std::max(1, options_.compile_threads) + options_.max_away; ++i) {
    threads_.push_back(options_.threads->Start([this] { Loop(); }));
  }
}

void JobRunner::Enqueue(const JobRow& job, bool told) {
  v1::SubmitRequest request;
  request.ParseFromString(job.request);
  // After a restart the wait begins anew.
  WaitingJob waiting;
  // A row that was not read is that of a new submission.
  waiting.turn = {job.owners.empty() ? std::vector<std::string>{job.owner} : job.owners, job.priority};
  waiting.owner = job.owner, waiting.order = arrivals_++, waiting.told = told;
  waiting.wish = WishOf(request, job.target);
  waiting.for_place = PlaceTimeout(request), waiting.for_device = QueueTimeout(request);
  waiting.until = options_.clock() + waiting.for_place;
  PutIntoQueue(job.id, std::move(waiting));
}

void JobRunner::PutIntoQueue(const std::string& job_id, WaitingJob waiting) {
  const Turn turn = WithLent(job_id, waiting.turn);
  queue_.SetJob(job_id, turn.owners, turn.priority);
  queue_.Push(job_id, "", waiting.order, job_id);
  if (waiting.until < next_expiry_) expiry_changed_.Signal();
  waiting_[job_id] = std::move(waiting);
}

std::optional<std::string> JobRunner::Dequeue(const std::string& job_id) {
  if (auto parked = parked_.extract(job_id); !parked.empty()) {
    if (parked.mapped().after.empty()) farm_->CountAwaited(parked.mapped().KindOfDevice(), -1);
    const auto ids = parked_for_.find(WhatFor(parked.mapped()));
    ids->second.erase(job_id);
    if (ids->second.empty()) parked_for_.erase(ids);
    PassTurnOn(parked.mapped().after);
    return std::move(parked.mapped().owner);
  }
  auto waiting = waiting_.extract(job_id);
  if (waiting.empty()) return std::nullopt;
  queue_.Remove(job_id, "", waiting.mapped().order);
  queue_.ForgetJob(job_id);
  return std::move(waiting.mapped().owner);
}

void JobRunner::Join(const std::string& job_id, const v1::SubmitRequest& request) {
  const absl::StatusOr<JobRow> job = store_->GetJob(job_id);
  absl::MutexLock lock(&mutex_);
  if (job.ok()) SetPriority(*job);
  const auto parked = parked_.find(job_id), waiting = waiting_.find(job_id);
  const bool is_parked = parked != parked_.end();
  if (!is_parked && waiting == waiting_.end()) return;
  WaitingJob& waits = is_parked ? parked->second : waiting->second;
  if (waits.lack.has_value() && waits.lack->failure.empty()) return;  // it goes on in any case
  waits.for_place = std::max(waits.for_place, PlaceTimeout(request));
  waits.for_device = std::max(waits.for_device, QueueTimeout(request));
  waits.until = std::max(waits.until, is_parked ? absl::UnixEpoch() + parked_time_.passed() + QueueTimeout(request)
                                                : options_.clock() + PlaceTimeout(request));
}

void JobRunner::SetPriority(const JobRow& job) {
  const Turn turn{job.owners, job.priority};
  if (const auto waits = waiting_.find(job.id); waits != waiting_.end()) waits->second.turn = turn;
  if (const auto running = running_.find(job.id); running != running_.end()) running->second->turn = turn;
  PassTurnOn(job.id);
  const auto parked = parked_.find(job.id);
  if (parked == parked_.end()) return;
  parked->second.turn = turn;
  PassTurnOn(parked->second.after);
}

JobRunner::Turn JobRunner::WithLent(const std::string& job_id, Turn turn) const {
  const auto lenders = parked_for_.find({.after = job_id});
  if (lenders == parked_for_.end()) return turn;
  for (const std::string& id : lenders->second) {
    const Turn& lent = parked_.at(id).turn;
    turn.priority = std::max(turn.priority, lent.priority);
    for (const std::string& owner : lent.owners) {
      if (!absl::c_linear_search(turn.owners, owner)) turn.owners.push_back(owner);
    }
  }
  return turn;
}

void JobRunner::PassTurnOn(const std::string& job_id) {
  if (const auto waits = waiting_.find(job_id); waits != waiting_.end()) {
    const Turn turn = WithLent(job_id, waits->second.turn);
    queue_.SetJob(job_id, turn.owners, turn.priority);
  }
  const auto running = running_.find(job_id);
  if (running == running_.end() || !running->second->turn.has_value()) return;
  const Turn turn = WithLent(job_id, *running->second->turn);
  farm_->SetJob(job_id, turn.owners, turn.priority);
}

std::vector<JobRunner::ExpiredJob> JobRunner::TakeExpired() {
  const absl::Time now = options_.clock();
  std::vector<ExpiredJob> expired;
  for (const auto& [id, waiting] : waiting_) {
    if (waiting.until <= now) expired.push_back({id, waiting});
  }
  for (const ExpiredJob& job : expired) (void)Dequeue(job.id);
  return expired;
}

void JobRunner::ExpireLoop() {
  while (true) {
    std::vector<ExpiredJob> expired;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      absl::Time first = absl::InfiniteFuture();
      for (const auto& [id, waiting] : waiting_) first = std::min(first, waiting.until);
      next_expiry_ = first;
      const absl::Duration wait = std::min(first - options_.clock(), absl::Hours(1));
      if (wait > absl::ZeroDuration()) options_.threads->WaitFor(&expiry_changed_, &mutex_, wait);
      if (stopping_) return;
      expired = TakeExpired();
    }
    for (const ExpiredJob& job : expired) Expire(job);
  }
}

void JobRunner::Expire(const ExpiredJob& expired) {
  const absl::Status error =
      expired.parked && expired.waiting.lack.has_value() ? absl::FailedPreconditionError(expired.waiting.lack->failure)
      : expired.parked
          ? absl::FailedPreconditionError(absl::StrCat(NoDeviceInWords(expired.waiting.wish), "; gave up after ",
                                                       absl::FormatDuration(expired.waiting.for_device)))
          : absl::DeadlineExceededError(
                "waited for a place among the compilations as long as its submission allows "
                "(--queue-timeout)");
  absl::StatusOr<JobRow> job = store_->GetJob(expired.id);
  for (; !job.ok() && !absl::IsNotFound(job.status()) && !stopping_; job = store_->GetJob(expired.id)) {
    options_.threads->Sleep(absl::Seconds(1));
  }
  if (job.ok() && job->state == JobPhase::kQueued) End(*job, error, {}, std::nullopt);
  // Not before its end is stored: until then it is in flight.
  {
    absl::MutexLock lock(&mutex_);
    CountOut(expired.waiting.owner);
  }
  EndLog(expired.id);
}

void JobRunner::CountOut(const std::string& owner) {
  const auto it = in_flight_.find(owner);
  if (it != in_flight_.end() && --it->second <= 0) in_flight_.erase(it);
}

bool JobRunner::HasPlace() const { return places_taken_ < std::max(1, options_.compile_threads); }

void JobRunner::Away(RunningJob& running, bool away) {
  absl::MutexLock lock(&mutex_);
  running.away = away;
  if (away) {
    --places_taken_;
    ++away_;
    return;
  }
  if (!running.gives_up) --away_;
  // One that gives up only ends.
  const auto may_go_on = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return stopping_ || running.gives_up || HasPlace(); };
  options_.threads->Await(&mutex_, absl::Condition(&may_go_on));
  ++places_taken_;
}

bool JobRunner::GivesUp(RunningJob& running, const FarmLack& lack) {
  absl::MutexLock lock(&mutex_);
  if (running.gives_up || running.cancelled || running.lost || stopping_) return running.gives_up;
  if (!running.away || (away_ <= options_.max_away && lack.waited < options_.longest_away)) return false;
  running.lack = lack;
  running.gives_up = true;
  --away_;
  return true;
}

void JobRunner::GiveUpFor(RunningJob& running, const std::string& after) {
  absl::MutexLock lock(&mutex_);
  running.after = after;
  running.gives_up = true;
}

bool JobRunner::Release(const JobRow& job, const std::string& words) {
  const v1::JobEvent event = MakeJobEvent(v1::QUEUED, "queued", absl::StrCat(words, "; the job goes on afterwards"));
  while (true) {
    const absl::Status released = store_->ReleaseJob(job.claim(), event.SerializeAsString());
    if (released.ok()) break;
    if (stopping_ || absl::IsFailedPrecondition(released)) return false;
    options_.log({LogLevel::kError,
                  "cannot store that the job waits, trying again",
                  {{"job", job.id}, {"error", released.ToString()}}});
    options_.threads->Sleep(absl::Seconds(1));
  }
  hub_.Notify(job.id);
  options_.log({LogLevel::kInfo, "gives its place up", {{"job", job.id}, {"why", words}}});
  return true;
}

void JobRunner::BeginStop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    expiry_changed_.SignalAll();
    claims_wanted_.SignalAll();
    parked_changed_.SignalAll();
  }
  hub_.Close();
}

void JobRunner::Stop() {
  BeginStop();
  for (const auto& thread : threads_) thread->Join();
  threads_.clear();
}

void JobRunner::Loop() {
  while (true) {
    std::string next;
    WaitingJob waited;
    const auto running = std::make_shared<RunningJob>();
    {
      absl::MutexLock lock(&mutex_);
      options_.threads->Await(&mutex_, absl::Condition(
                                           +[](JobRunner* runner) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                             return runner->stopping_ ||
                                                    (!runner->waiting_.empty() && runner->HasPlace());
                                           },
                                           this));
      if (stopping_) return;
      next = queue_.Take({""}, [](const std::string&) { return true; });
      waited = waiting_.at(next);
      (void)Dequeue(next);
      ++places_taken_;
      running_[next] = running;
    }
    running->began_before = waited.began, running->waited = waited.waited;
    bool parked = Park(next, waited, *running);
    if (!parked) {
      parked = !Run(next, running) && ParkAgain(next, waited, *running);
      if (!parked) EndLog(next);
    }
    absl::MutexLock lock(&mutex_);
    --places_taken_;
    if (parked) continue;  // it is in flight
    running_.erase(next);
    farm_->ForgetJob(next);
    CountOut(waited.owner);
    if (parked_for_.count({.after = next}) > 0) {
      arrivals_seen_ = -1;
      parked_changed_.Signal();
    }
  }
}

bool JobRunner::Run(const std::string& job_id, const std::shared_ptr<RunningJob>& running) {
  std::optional<JobRow> job = Begin(job_id);
  if (!job.has_value()) return true;
  v1::SubmitRequest request;
  if (!request.ParseFromString(job->request)) {
    End(*job, absl::InternalError("the stored request does not parse"), {}, std::nullopt);
    return true;
  }
  const double waited_s = (UnixMillisNow() - job->created_ms) / 1e3;
  if (!running->began_before) metrics_->Observe(Metric::kJobWait, waited_s);
  options_.log({LogLevel::kInfo, "started", {{"job", job_id}, {"waited_s", absl::StrFormat("%.3f", waited_s)}}});
  metrics_->Set(Metric::kJobsRunning, ++jobs_running_);
  {
    // A submission that has joined since the row was read knows better.
    absl::MutexLock lock(&mutex_);
    running->claim = job->claim();
    if (!running->turn.has_value()) SetPriority(*job);
  }
  auto leave = absl::MakeCleanup([this] { metrics_->Set(Metric::kJobsRunning, --jobs_running_); });

  const std::string folder = absl::StrCat(options_.work_folder, "/", job_id);
  auto cleaner = absl::MakeCleanup([&] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  ProgressThrottle throttle(options_.clock);
  StageTimer stages(options_.clock);
  const auto taken = [&] { return running->cancelled.load() || running->lost.load() || running->gives_up.load(); };
  const Hooks hooks{[&] { return stopping_ || taken(); },
                    taken,
                    [&](const ProgressEvent& event) {
                      LogStage(job_id, stages.Begin(event.stage));
                      if (throttle.Passes(event)) AppendEvent(job_id, event, v1::RUNNING);
                    },
                    [&](bool away) { Away(*running, away); },
                    [&](const FarmLack& lack) { return GivesUp(*running, lack); },
                    [&](const std::string& after) { GiveUpFor(*running, after); },
                    running->waited};
  v1::Checks checks;
  absl::StatusOr<ResultRow> performed = PerformWithAttempts(&*job, request, folder, hooks, &checks);
  LogStage(job_id, stages.Begin(""));
  absl::Status outcome = performed.status();
  std::optional<ResultRow> result;
  if (outcome.ok()) result = *std::move(performed);
  // The shutdown interrupted the job, not the user: the row stays unfinished, and the next start takes it up.
  if (!outcome.ok() && stopping_ && !running->cancelled) {
    const v1::JobEvent event = MakeJobEvent(v1::QUEUED, "queued", "the server was stopped; the job starts again");
    (void)store_->ReleaseJob(job->claim(), event.SerializeAsString());
    return true;
  }
  if (!outcome.ok() && running->lost) return true;  // whoever has it ends it
  if (!outcome.ok() && running->gives_up && !running->cancelled) {
    absl::ReleasableMutexLock lock(&mutex_);
    const std::string words = running->lack.has_value() ? running->lack->words : std::string(outcome.message());
    lock.Release();
    return !Release(*job, words);
  }
  if (!outcome.ok() && running->cancelled) outcome = absl::CancelledError("cancelled");
  End(*job, outcome, checks, result);
  return true;
}

std::optional<JobRow> JobRunner::Begin(const std::string& job_id) {
  while (!stopping_) {
    absl::StatusOr<std::optional<JobRow>> job = store_->ClaimJob(job_id, claimant_, options_.lease, UnixMillisNow());
    if (job.ok()) return *std::move(job);
    options_.log({LogLevel::kError,
                  "cannot store the job's start, trying again",
                  {{"job", job_id}, {"error", job.status().ToString()}}});
    options_.threads->Sleep(absl::Seconds(1));
  }
  return std::nullopt;
}

void JobRunner::End(const JobRow& job, absl::Status outcome, const v1::Checks& checks,
                    const std::optional<ResultRow>& result) {
  for (absl::Status finished = Finish(job, outcome, checks, result); !finished.ok();) {
    if (stopping_ || finished.code() == absl::StatusCode::kFailedPrecondition) return;
    options_.log({LogLevel::kError,
                  "cannot store the job's end, trying again",
                  {{"job", job.id}, {"error", finished.ToString()}}});
    if (outcome.ok()) outcome = finished;
    options_.threads->Sleep(absl::Seconds(1));
    finished = Finish(job, outcome, checks, std::nullopt);
  }
}

absl::StatusOr<ResultRow> JobRunner::PerformWithAttempts(JobRow* running, const v1::SubmitRequest& request,
                                                         const std::string& folder, const Hooks& hooks,
                                                         v1::Checks* checks) {
  const JobRow& job = *running;
  for (int attempt = job.attempts + 1;; ++attempt) {
    absl::StatusOr<ResultRow> performed = Perform(running, request, folder, hooks, checks);
    const std::string how = HowTheProcessEnded(performed.status());
    if (how.empty() || hooks.cancelled()) return performed;
    const std::string evidence(performed.status().message());
    metrics_->Count(Metric::kCompileDeaths, {{"how", how}});
    options_.log({LogLevel::kWarning,
                  evidence,
                  {{"job", job.id}, {"attempt", absl::StrCat(attempt, "/", options_.max_attempts)}}});
    const bool last = attempt >= options_.max_attempts;
    const v1::JobEvent event =
        MakeJobEvent(v1::RUNNING, "queued", last ? evidence : absl::StrCat("tried once more, because ", evidence));
    const absl::Status counted = store_->FailJobAttempt(job.claim(), event.SerializeAsString());
    hub_.Notify(job.id);
    if (last) return DiedError(job, attempt, evidence);
    RETURN_IF_ERROR(counted);  // an attempt that is not counted could be repeated for ever
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
}

absl::Status JobRunner::Finish(JobRow job, const absl::Status& outcome, const v1::Checks& checks,
                               const std::optional<ResultRow>& result) {
  const bool cancelled = outcome.code() == absl::StatusCode::kCancelled;
  job.state = outcome.ok() ? JobPhase::kSucceeded : cancelled ? JobPhase::kCancelled : JobPhase::kFailed;
  job.finished_ms = UnixMillisNow();
  v1::JobEvent event = MakeJobEvent(static_cast<v1::JobState>(job.state), "write", "");
  if (outcome.ok()) {
    job.account = result->account;
    job.bundle_digest = result->bundle_digest, job.bundle_bytes = result->bundle_bytes;
    job.checks = checks.SerializeAsString();
    event.mutable_account()->ParseFromString(job.account);
    if (!job.checks.empty()) *event.mutable_checks() = checks;
    *event.mutable_bundle() = BundleInfoOf(job.bundle_digest, job.bundle_bytes, job.key);
  } else {
    *event.mutable_error() = ErrorToProto(outcome);
    job.error_code = event.error().code();
    job.error_message = event.error().message();
  }
  RETURN_IF_ERROR(store_->FinishJob(job, event.SerializeAsString(), result));
  metrics_->Count(Metric::kJobs, {{"outcome", outcome.ok() ? "succeeded" : cancelled ? "cancelled" : "failed"}});
  LogLine line{
      LogLevel::kInfo,
      outcome.ok() ? "succeeded"
      : cancelled  ? "cancelled"
                   : "failed",
      {{"job", job.id}, {"since_submit_s", absl::StrFormat("%.3f", (job.finished_ms - job.created_ms) / 1e3)}}};
  if (outcome.ok()) {
    line.fields.push_back({"bundle", job.bundle_digest});
    if (checks.verification().verdict() == v1::OUTPUT_WRONG) {
      line.level = LogLevel::kError;
      line.fields.push_back({"verification", "the bundle computes other numbers than its strict reference"});
    }
  } else if (!cancelled) {
    line.level = LogLevel::kWarning;
    line.fields.push_back({"error", outcome.ToString()});
  }
  options_.log(line);
  hub_.Notify(job.id);
  return absl::OkStatus();
}

void JobRunner::LogStage(const std::string& job_id, const std::optional<StageTimer::Ended>& ended) const {
  if (!ended.has_value()) return;
  options_.log({LogLevel::kDebug,
                "stage ended",
                {{"job", job_id},
                 {"stage", ended->stage},
                 {"seconds", absl::StrFormat("%.3f", absl::ToDoubleSeconds(ended->took))}}});
}

JobClaim JobRunner::ClaimOf(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  const auto running = running_.find(job_id);
  return running != running_.end() ? running->second->claim.value_or(JobClaim{job_id}) : JobClaim{job_id};
}

void JobRunner::AppendEvent(const std::string& job_id, const ProgressEvent& event, v1::JobState state) {
  v1::JobEvent proto = MakeJobEvent(state, event.stage, event.message);
  proto.set_done(event.done);
  proto.set_total(event.total);
  options_.log({LogLevel::kDebug,
                event.message.empty() ? "stage" : event.message,
                {{"job", job_id}, {"stage", event.stage}, {"done", absl::StrCat(event.done, "/", event.total)}}});
  // A progress event that cannot be written does not fail the job. If the disk is full, the end of the job meets that
  // error, too.
  if (store_->AppendJobEvent(ClaimOf(job_id), proto.SerializeAsString()).ok()) hub_.Notify(job_id);
}

}  // namespace fusion
