#include "server/jobs/job_runner.h"

#include <algorithm>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/cost/target.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "server/artifacts/model_files.h"
#include "server/compile_process/compile_process.h"
#include "server/jobs/job_checks.h"
#include "server/jobs/job_messages.h"
#include "server/jobs/progress_throttle.h"
#include "server/scheduler/farm_plans.h"

namespace fusion {
namespace {

constexpr int kMaxPlansAtOnce = 4;
// Jobs that may wait for a worker beside those that compile. Each holds a thread and its model.
constexpr int kMostAway = 32;
constexpr size_t kMaxPlanJsonBytes = 3 << 20;
constexpr size_t kMaxRewriteBytes = 512 << 10;  // all together; gRPC limits a message to 4 MiB

int64_t NowMs() { return absl::ToUnixMillis(absl::Now()); }

absl::Duration QueueTimeout(const v1::SubmitRequest& request) {
  return request.queue_timeout_ms() > 0 ? absl::Milliseconds(request.queue_timeout_ms()) : absl::Minutes(10);
}

v1::JobEvent MakeEvent(v1::JobState state, const std::string& stage, const std::string& message) {
  v1::JobEvent event;
  event.set_time_ms(NowMs());
  event.set_state(state);
  event.set_stage(stage);
  event.set_message(CutMessage(message));
  return event;
}

// `runs_as`: the job that does the work.
LogLine SubmittedLine(const JobRow& job, const std::string& runs_as, const v1::SubmitResponse& response) {
  return {LogLevel::kInfo,
          "submitted",
          {{"job", runs_as},
           {"submission", job.id},
           {"model", job.model_name},
           {"target", job.target},
           {"client", job.client_id},
           {"answer", response.from_store() ? "from the store"
                      : response.joined()   ? "joined"
                                            : "queued"}}};
}

}  // namespace

JobRunner::JobRunner(JobRunnerOptions options, CompilerFunctions compiler, Store* store, ArtifactStore* artifacts,
                     Farm* farm, Metrics* metrics)
    : options_(std::move(options)),
      compiler_(std::move(compiler)),
      store_(store),
      artifacts_(artifacts),
      farm_(farm),
      metrics_(metrics),
      started_(SteadyNow()) {}

JobRunner::~JobRunner() { Stop(); }

absl::Status JobRunner::Restore() {
  std::error_code error;
  std::filesystem::remove_all(options_.work_folder, error);
  std::filesystem::create_directories(options_.work_folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make ", options_.work_folder));
  ASSIGN_OR_RETURN(std::vector<JobRow> unfinished, store_->UnfinishedJobs());
  for (const JobRow& job : unfinished) {
    if (job.attempts >= options_.max_attempts) {
      RETURN_IF_ERROR(GiveUp(job));
      continue;
    }
    AppendEvent(job.id, {"queued", 0, 0, "the server was restarted; the job starts again"}, v1::QUEUED);
    options_.log(
        {LogLevel::kInfo, "starts again after a restart", {{"job", job.id}, {"attempts", absl::StrCat(job.attempts)}}});
    absl::MutexLock lock(&mutex_);
    queue_.push_back(job.id);
  }
  return absl::OkStatus();
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
  return Finish(job, DiedError(job, job.attempts, last.message()), {}, std::nullopt);
}

void JobRunner::Start() {
  for (int i = 0; i < std::max(1, options_.compile_threads) + kMostAway; ++i) threads_.emplace_back([this] { Loop(); });
}

bool JobRunner::HasPlace() const { return places_taken_ < std::max(1, options_.compile_threads); }

void JobRunner::Away(bool away) {
  absl::MutexLock lock(&mutex_);
  if (away) {
    --places_taken_;
    return;
  }
  const auto may_go_on = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return stopping_ || HasPlace(); };
  mutex_.Await(absl::Condition(&may_go_on));
  ++places_taken_;
}

void JobRunner::BeginStop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  hub_.Close();
}

void JobRunner::Stop() {
  BeginStop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

absl::StatusOr<std::optional<AttachedWorker>> JobRunner::KnownDevice(const std::string& target) {
  std::optional<AttachedWorker> device = farm_->FindDevice(target);
  if (device.has_value()) return device;
  const Target wanted = ParseTarget(target);
  ASSIGN_OR_RETURN(std::optional<WorkerRow> row, store_->LatestWorker(wanted.kind));
  if (row.has_value()) {
    ASSIGN_OR_RETURN(DeviceModel model, DeviceModelFromJson(row->device_model_json));
    if (wanted.IsFor(model)) {
      device.emplace();
      device->id = row->id, device->name = row->name, device->device = std::move(model);
      device->fingerprint = row->fingerprint;
      return device;
    }
  }
  if (absl::StatusOr<DeviceModel> stored = StoredDevice(target); stored.ok()) {
    device.emplace();
    device->fingerprint = stored->Fingerprint();
    device->device = *std::move(stored);
  }
  return device;
}

absl::Status JobRunner::TakeProfiledRates(DeviceModel* device) {
  ASSIGN_OR_RETURN(const std::vector<DeviceRow> rows, store_->Devices(device->Fingerprint()));
  if (rows.empty()) return absl::OkStatus();  // no worker has measured this device
  ASSIGN_OR_RETURN(const DeviceModel profiled, DeviceModelFromJson(rows[0].model_json));
  *device = device->WithRatesOf(profiled);
  return absl::OkStatus();
}

absl::StatusOr<JobRunner::Checked> JobRunner::Check(const v1::SubmitRequest& request,
                                                    const std::function<bool()>& hung_up) {
  if (stopping_) return absl::UnavailableError("the server is shutting down; try again");
  if (options_.room) RETURN_IF_ERROR(options_.room());
  RETURN_IF_ERROR(CheckModelFiles(request));
  ASSIGN_OR_RETURN(CompileOptions options, OptionsFromProto(request.options(), compiler_.planners));
  for (const std::string& id : options.disabled_rules) RETURN_IF_ERROR(compiler_.check_rule(id));
  RETURN_IF_ERROR(CheckChunksPresent(request, *artifacts_));
  ASSIGN_OR_RETURN(std::optional<AttachedWorker> device, KnownDevice(options.target));
  if (!device.has_value() && farm_->AttachedKinds() == "none") {
    device = farm_->AwaitDevice(options.target, started_ + options_.first_worker_grace - SteadyNow(), hung_up);
  }
  const std::string kind = ParseTarget(options.target).kind;
  if (!device.has_value() && options_.is_expected && options_.is_expected(kind)) {
    device = farm_->AwaitDevice(options.target, options_.first_worker_grace,
                                [&] { return hung_up() || !options_.is_expected(kind); });
  }
  if (!device.has_value() && options.target != "cpu") {
    return absl::FailedPreconditionError(absl::StrCat("no worker for target '", options.target,
                                                      "'; kinds attached: ", farm_->AttachedKinds(),
                                                      "; without one: ", absl::StrJoin(StoredTargets(), ", ")));
  }
  Checked checked{std::move(options), device.value_or(AttachedWorker{})};
  if (device.has_value()) RETURN_IF_ERROR(TakeProfiledRates(&checked.device.device));
  return checked;
}

bool JobRunner::IsAttached(const AttachedWorker& device) const {
  return farm_->WorkersThatOffer(MeasureRequirement(device.device.kind, device.fingerprint)) > 0;
}

void JobRunner::AwaitFirstWorker(const std::string& target, const std::function<bool()>& cancelled) const {
  const absl::Time grace_end = started_ + options_.first_worker_grace;
  const std::string kind = ParseTarget(target).kind;
  farm_->AwaitDevice(target, options_.first_worker_grace, [&] {
    const bool expected = options_.is_expected && options_.is_expected(kind);
    return cancelled() || (SteadyNow() > grace_end && !expected);
  });
}

absl::StatusOr<std::optional<ResultRow>> JobRunner::UsableResult(const std::string& key,
                                                                 const AttachedWorker& device) const {
  ASSIGN_OR_RETURN(std::optional<ResultRow> result, store_->FindResult(key));
  v1::Account account;
  if (!result.has_value() || !artifacts_->SizeBytes(result->bundle_digest).ok()) return std::nullopt;
  if (!account.ParseFromString(result->account)) return result;
  const bool estimated = account.from_model() > 0 && account.measured() == 0 && account.from_database() == 0;
  if (estimated && IsAttached(device)) return std::nullopt;
  return result;
}

absl::StatusOr<v1::SubmitResponse> JobRunner::Submit(const v1::SubmitRequest& request,
                                                     const std::function<bool()>& hung_up) {
  ASSIGN_OR_RETURN(const Checked checked, Check(request, hung_up));
  JobRow job;
  job.id = NewJobId();
  job.key = JobKey(request, checked.options, checked.device.fingerprint);
  job.model_name = CutMessage(request.model_name()).substr(0, 255);
  job.target = checked.options.target;
  job.client_id = CutMessage(request.client_id()).substr(0, 255);
  job.request = request.SerializeAsString();
  job.created_ms = NowMs();
  v1::SubmitResponse response;
  response.set_key(job.key);

  ASSIGN_OR_RETURN(const std::optional<ResultRow> result, UsableResult(job.key, checked.device));
  const bool to_check = result.has_value() && MissingFrom(result->checks, request).any() && IsAttached(checked.device);
  if (result.has_value() && !to_check) {
    metrics_->Count(Metric::kCacheRequests, {{"tier", "result"}, {"result", "hit"}});
    job.state = JobPhase::kSucceeded;
    job.started_ms = job.finished_ms = job.created_ms;
    job.account = result->account;
    job.bundle_digest = result->bundle_digest, job.bundle_bytes = result->bundle_bytes;
    v1::JobEvent event = MakeEvent(v1::SUCCEEDED, "write", "answered from the store");
    const v1::Checks checks = ChecksFor(request, result->checks, NoWorkerFor(checked.device.device));
    job.checks = checks.SerializeAsString();
    if (!job.checks.empty()) *event.mutable_checks() = checks;
    event.mutable_account()->ParseFromString(job.account);
    event.mutable_bundle()->set_digest(job.bundle_digest);
    event.mutable_bundle()->set_size_bytes(job.bundle_bytes);
    ASSIGN_OR_RETURN(const std::string id, store_->InsertJob(job, event.SerializeAsString()));
    response.set_job_id(job.id);
    response.set_joined(id != job.id);
    response.set_from_store(id == job.id);
    response.set_state(id == job.id ? v1::SUCCEEDED : v1::QUEUED);
    metrics_->Count(Metric::kJobs, {{"outcome", "from_store"}});
    options_.log(SubmittedLine(job, id, response));
    return response;
  }
  metrics_->Count(Metric::kCacheRequests, {{"tier", "result"}, {"result", to_check ? "hit" : "miss"}});
  const v1::JobEvent event = MakeEvent(v1::QUEUED, "queued", "");
  ASSIGN_OR_RETURN(const std::string id, store_->InsertJob(job, event.SerializeAsString()));
  response.set_job_id(job.id);
  response.set_joined(id != job.id);
  response.set_from_store(to_check && id == job.id);
  response.set_state(v1::QUEUED);
  options_.log(SubmittedLine(job, id, response));
  if (id == job.id) {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(id);
  }
  return response;
}

absl::StatusOr<v1::PlanResponse> JobRunner::Plan(const v1::SubmitRequest& request,
                                                 const std::function<bool()>& hung_up) {
  auto leave = absl::MakeCleanup([this] { --plans_running_; });
  if (++plans_running_ > kMaxPlansAtOnce) {
    return absl::ResourceExhaustedError(absl::StrCat(kMaxPlansAtOnce, " plans are being made; try again"));
  }
  ASSIGN_OR_RETURN(Checked checked, Check(request, hung_up));
  const std::string id = absl::StrCat("plan-", NewJobId());
  const std::string folder = absl::StrCat(options_.work_folder, "/", id);
  options_.log({LogLevel::kInfo,
                "plan asked",
                {{"job", id}, {"model", CutMessage(request.model_name())}, {"target", checked.options.target}}});
  auto cleaner = absl::MakeCleanup([&] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  ASSIGN_OR_RETURN(const ModelFiles files, AssembleModel(request, *artifacts_, folder));
  FarmJob farm_job = MakeFarmJob(id, checked.device, checked.options, request);
  farm_job.cancelled = [&] { return stopping_ || (hung_up && hung_up()); };
  farm_job.progress = [](const ProgressEvent&) {};
  FarmOracle oracle(farm_job);
  FarmToolchain toolchain(farm_job);
  ASSIGN_OR_RETURN(PlanReport report, compiler_.plan(files, checked.options,
                                                     {&checked.device.device, &oracle, &toolchain, farm_job.progress,
                                                      farm_job.cancelled}));
  v1::PlanResponse response;
  *response.mutable_account() = AccountToProto(report.account);
  // Planning builds nothing, so that plans are compared as a whole by submissions alone.
  ASSIGN_OR_RETURN(const std::optional<ResultRow> submitted,
                   UsableResult(JobKey(request, checked.options, checked.device.fingerprint), checked.device));
  v1::Account account;
  if (submitted.has_value() && account.ParseFromString(submitted->account)) {
    *response.mutable_account()->mutable_alternatives() = account.alternatives();
    response.mutable_account()->set_not_compared(account.not_compared());
  }
  if (report.text.size() > kMaxPlanJsonBytes) report.text.resize(kMaxPlanJsonBytes);
  if (report.text.size() + report.account.plan_json.size() <= kMaxPlanJsonBytes) {
    response.set_plan_json(std::move(report.account.plan_json));
  }
  response.set_text(std::move(report.text));
  response.set_rewrites_total(static_cast<int64_t>(report.account.rewrites.size()));
  size_t rewrite_bytes = 0;
  for (const RewriteAccount& rewrite : report.account.rewrites) {
    v1::RewriteProto proto = RewriteToProto(rewrite);
    rewrite_bytes += proto.ByteSizeLong();
    if (rewrite_bytes > kMaxRewriteBytes) break;
    *response.add_rewrites() = std::move(proto);
  }
  return response;
}

absl::StatusOr<JobRow> JobRunner::Cancel(const std::string& submission_id) {
  ASSIGN_OR_RETURN(const JobRow job, store_->FindSubmission(submission_id));
  if (IsFinal(job.state)) return job;
  options_.log({LogLevel::kInfo, "cancel asked", {{"job", job.runs_as}, {"submission", submission_id}}});
  v1::JobEvent event = MakeEvent(v1::CANCELLED, "write", "");
  *event.mutable_error() = ErrorToProto(absl::CancelledError("cancelled"));
  ASSIGN_OR_RETURN(const Store::Leaving leaving,
                   store_->LeaveJob(submission_id, event.time_ms(), event.SerializeAsString(), event.error().code(),
                                    event.error().message()));
  if (leaving.ended) {
    {
      absl::MutexLock lock(&mutex_);
      if (auto flag = cancel_flags_.find(job.runs_as); flag != cancel_flags_.end()) *flag->second = true;
      queue_.erase(std::remove(queue_.begin(), queue_.end(), job.runs_as), queue_.end());
    }
    metrics_->Count(Metric::kJobs, {{"outcome", "cancelled"}});
    options_.log({LogLevel::kInfo, "cancelled", {{"job", job.runs_as}}});
  }
  hub_.Notify(job.runs_as);
  return store_->FindSubmission(submission_id);
}

void JobRunner::Loop() {
  while (true) {
    std::string job_id;
    std::shared_ptr<std::atomic<bool>> cancel;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](JobRunner* runner) ABSL_NO_THREAD_SAFETY_ANALYSIS {
            return runner->stopping_ || (!runner->queue_.empty() && runner->HasPlace());
          },
          this));
      if (stopping_) return;
      job_id = std::move(queue_.front());
      queue_.pop_front();
      ++places_taken_;
      cancel = cancel_flags_[job_id] = std::make_shared<std::atomic<bool>>(false);
    }
    Run(job_id, cancel);
    absl::MutexLock lock(&mutex_);
    cancel_flags_.erase(job_id);
    --places_taken_;
  }
}

void JobRunner::Run(const std::string& job_id, const std::shared_ptr<std::atomic<bool>>& cancel) {
  absl::StatusOr<JobRow> job = store_->GetJob(job_id);
  if (!job.ok() || IsFinal(job->state)) return;
  v1::SubmitRequest request;
  if (!request.ParseFromString(job->request)) {
    (void)Finish(*job, absl::InternalError("the stored request does not parse"), {}, std::nullopt);
    return;
  }
  if (!store_->StartJob(job_id, NowMs()).ok()) return;
  const double waited_s = (NowMs() - job->created_ms) / 1e3;
  metrics_->Observe(Metric::kJobWait, waited_s);
  options_.log({LogLevel::kInfo, "started", {{"job", job_id}, {"waited_s", absl::StrFormat("%.3f", waited_s)}}});
  metrics_->Set(Metric::kJobsRunning, ++jobs_running_);
  auto leave = absl::MakeCleanup([this] { metrics_->Set(Metric::kJobsRunning, --jobs_running_); });

  const std::string folder = absl::StrCat(options_.work_folder, "/", job_id);
  auto cleaner = absl::MakeCleanup([&] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  ProgressThrottle throttle(SteadyNow);
  const Hooks hooks{[&] { return stopping_ || cancel->load(); }, [&] { return cancel->load(); },
                    [&](const ProgressEvent& event) {
                      if (throttle.Passes(event)) AppendEvent(job_id, event, v1::RUNNING);
                    },
                    [&](bool away) { Away(away); }};
  v1::Checks checks;
  absl::StatusOr<ResultRow> performed = PerformWithAttempts(*job, request, folder, hooks, &checks);
  absl::Status outcome = performed.status();
  std::optional<ResultRow> result;
  if (outcome.ok()) result = *std::move(performed);
  // The shutdown interrupted the job, not the user: the row stays unfinished, and the next start takes it up.
  if (!outcome.ok() && stopping_ && !cancel->load()) {
    (void)store_->GiveJobBack(job_id);
    return;
  }
  if (!outcome.ok() && cancel->load()) outcome = absl::CancelledError("cancelled");
  // A full disk must not leave the job unfinished, because watchers wait for its end.
  for (absl::Status finished = Finish(*job, outcome, checks, result); !finished.ok();) {
    if (stopping_ || finished.code() == absl::StatusCode::kFailedPrecondition) return;
    options_.log({LogLevel::kError,
                  "cannot store the job's end, trying again",
                  {{"job", job_id}, {"error", finished.ToString()}}});
    if (outcome.ok()) outcome = finished;
    absl::SleepFor(absl::Seconds(1));
    finished = Finish(*job, outcome, checks, std::nullopt);
  }
}

absl::StatusOr<ResultRow> JobRunner::PerformWithAttempts(const JobRow& job, const v1::SubmitRequest& request,
                                                         const std::string& folder, const Hooks& hooks,
                                                         v1::Checks* checks) {
  for (int attempt = job.attempts + 1;; ++attempt) {
    absl::StatusOr<ResultRow> performed = Perform(job.id, request, folder, hooks, checks);
    const std::string how = HowTheProcessEnded(performed.status());
    if (how.empty() || hooks.cancelled()) return performed;
    const std::string evidence(performed.status().message());
    metrics_->Count(Metric::kCompileDeaths, {{"how", how}});
    options_.log({LogLevel::kWarning,
                  evidence,
                  {{"job", job.id}, {"attempt", absl::StrCat(attempt, "/", options_.max_attempts)}}});
    const bool last = attempt >= options_.max_attempts;
    const v1::JobEvent event =
        MakeEvent(v1::RUNNING, "queued", last ? evidence : absl::StrCat("tried once more, because ", evidence));
    const absl::Status counted = store_->CountJobAttempt(job.id, event.SerializeAsString());
    hub_.Notify(job.id);
    if (last) return DiedError(job, attempt, evidence);
    RETURN_IF_ERROR(counted);  // an attempt that is not counted could be repeated for ever
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
}

absl::StatusOr<AttachedWorker> JobRunner::DeviceFor(const v1::SubmitRequest& request, const std::string& target,
                                                    const Hooks& hooks) {
  ASSIGN_OR_RETURN(std::optional<AttachedWorker> device, KnownDevice(target));
  if (!device.has_value()) {
    const std::string message = absl::StrCat("no worker for ", target, "; kinds attached: ", farm_->AttachedKinds());
    hooks.progress({"queued", 0, 0, message});
    hooks.away(true);
    device = farm_->AwaitDevice(target, QueueTimeout(request), hooks.cancelled);
    hooks.away(false);
    if (hooks.cancelled()) return absl::CancelledError("cancelled");
    if (!device.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat(message, "; gave up after ", absl::FormatDuration(QueueTimeout(request))));
    }
  }
  if (const std::vector<std::string> others = farm_->OtherDevices(target, device->fingerprint); !others.empty()) {
    hooks.progress({"queued", 0, 0,
                    absl::StrCat("several devices fit '", target, "': planned for ", device->device.name, " (",
                                 device->fingerprint.substr(0, 8), "), not for ", absl::StrJoin(others, ", "))});
  }
  if (device->id.empty()) {
    hooks.progress({"queued", 0, 0,
                    absl::StrCat("no worker for ", target, ": planned by the published figures of ",
                                 device->device.name, ", and the cost model answers for measurements")});
  }
  RETURN_IF_ERROR(TakeProfiledRates(&device->device));
  return *std::move(device);
}

absl::StatusOr<ResultRow> JobRunner::Compile(const ModelFiles& files, const CompileOptions& options,
                                             const FarmJob& farm_job, const std::string& key, const std::string& folder,
                                             const Hooks& hooks) {
  const absl::Time start = SteadyNow();
  FarmOracle oracle(farm_job);
  FarmPlans plans(farm_job, folder);
  FarmToolchain toolchain(farm_job);
  const std::string path = absl::StrCat(folder, "/out.fusion");
  ASSIGN_OR_RETURN(
      const CompileAccount account,
      compiler_.compile(files, options,
                        {&farm_job.device.device, &oracle, &toolchain, hooks.progress, hooks.cancelled, &plans}, path));
  for (const StageSeconds& stage : account.stages) {
    metrics_->Observe(Metric::kJobDuration, stage.seconds, {{"stage", stage.stage}});
  }
  ASSIGN_OR_RETURN(const Artifact bundle, artifacts_->Adopt(path));
  metrics_->Observe(Metric::kBundleBytes, static_cast<double>(bundle.size_bytes));
  metrics_->Observe(Metric::kJobDuration, absl::ToDoubleSeconds(SteadyNow() - start), {{"stage", "all"}});
  return ResultRow{key, bundle.digest, bundle.size_bytes, AccountToProto(account).SerializeAsString(), NowMs()};
}

absl::StatusOr<ResultRow> JobRunner::Perform(const std::string& job_id, const v1::SubmitRequest& request,
                                             const std::string& folder, const Hooks& hooks, v1::Checks* checks) {
  ASSIGN_OR_RETURN(const CompileOptions options, OptionsFromProto(request.options(), compiler_.planners));
  ASSIGN_OR_RETURN(const AttachedWorker device, DeviceFor(request, options.target, hooks));
  const std::string key = JobKey(request, options, device.fingerprint);
  RETURN_IF_ERROR(CheckChunksPresent(request, *artifacts_));
  ASSIGN_OR_RETURN(const ModelFiles files, AssembleModel(request, *artifacts_, folder));
  FarmJob farm_job = MakeFarmJob(job_id, device, options, request);
  farm_job.cancelled = hooks.cancelled_by_user;
  farm_job.progress = hooks.progress;
  farm_job.away = hooks.away;
  ASSIGN_OR_RETURN(std::optional<ResultRow> result, UsableResult(key, device));
  // A job that starts again with the server often needs nothing but a worker, which attaches a little later.
  if (result.has_value() && !IsAttached(device)) AwaitFirstWorker(options.target, hooks.cancelled);
  if (!result.has_value()) {
    ASSIGN_OR_RETURN(result, Compile(files, options, farm_job, key, folder, hooks));
    // A job that is interrupted from now on does not compile again.
    if (request.measure() || request.verify()) RETURN_IF_ERROR(store_->PutResult(*result));
  }
  v1::Checks lasting;
  lasting.ParseFromString(result->checks);
  *checks = ChecksFor(request, result->checks, "");
  const JobChecks todo{farm_job, compiler_.compile, hooks.cancelled, files, options, folder, *result};
  RETURN_IF_ERROR(todo.Run(MissingFrom(result->checks, request), checks, &lasting));
  result->checks = lasting.SerializeAsString();
  return *std::move(result);
}

FarmJob JobRunner::MakeFarmJob(const std::string& job_id, const AttachedWorker& device, const CompileOptions& options,
                               const v1::SubmitRequest& request) {
  FarmJob job;
  job.id = job_id;
  job.farm = farm_, job.store = store_, job.artifacts = artifacts_, job.metrics = metrics_, job.sources = &sources_;
  job.device = device;
  job.threads = options.threads;
  job.queue_timeout = QueueTimeout(request);
  return job;
}

absl::Status JobRunner::Finish(JobRow job, const absl::Status& outcome, const v1::Checks& checks,
                               const std::optional<ResultRow>& result) {
  const bool cancelled = outcome.code() == absl::StatusCode::kCancelled;
  job.state = outcome.ok() ? JobPhase::kSucceeded : cancelled ? JobPhase::kCancelled : JobPhase::kFailed;
  job.finished_ms = NowMs();
  v1::JobEvent event = MakeEvent(static_cast<v1::JobState>(job.state), "write", "");
  if (outcome.ok()) {
    job.account = result->account;
    job.bundle_digest = result->bundle_digest, job.bundle_bytes = result->bundle_bytes;
    job.checks = checks.SerializeAsString();
    event.mutable_account()->ParseFromString(job.account);
    if (!job.checks.empty()) *event.mutable_checks() = checks;
    event.mutable_bundle()->set_digest(job.bundle_digest);
    event.mutable_bundle()->set_size_bytes(job.bundle_bytes);
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

void JobRunner::AppendEvent(const std::string& job_id, const ProgressEvent& event, v1::JobState state) {
  v1::JobEvent proto = MakeEvent(state, event.stage, event.message);
  proto.set_done(event.done);
  proto.set_total(event.total);
  options_.log({LogLevel::kDebug,
                event.message.empty() ? "stage" : event.message,
                {{"job", job_id}, {"stage", event.stage}, {"done", absl::StrCat(event.done, "/", event.total)}}});
  // A progress event that cannot be written does not fail the job. If the disk is full, the end of the job meets that
  // error, too.
  if (store_->AppendJobEvent(job_id, proto.SerializeAsString()).ok()) hub_.Notify(job_id);
}

}  // namespace fusion
