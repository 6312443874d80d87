// The part of JobRunner that takes submissions: what is checked, which device a job is for, and what is answered at
// once.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/cost/target.h"
#include "proto/retry/retry_info.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "server/artifacts/model_files.h"
#include "server/jobs/device_choice.h"
#include "server/jobs/job_checks.h"
#include "server/jobs/job_logs.h"
#include "server/jobs/job_messages.h"
#include "server/jobs/job_runner.h"
#include "server/scheduler/farm_builds.h"

namespace fusion {
namespace {

constexpr int kMaxPlansAtOnce = 4;
constexpr absl::Duration kPauseOfACaller = absl::Seconds(5);  // who was refused tries again after
constexpr int kMostPriority = 100;
constexpr size_t kMaxRequestIdBytes = 64;
constexpr size_t kMaxPlanJsonBytes = 3 << 20;
constexpr size_t kMaxRewriteBytes = 512 << 10;  // all together; gRPC limits a message to 4 MiB

absl::Status CheckRequirements(const v1::SubmitRequest& request) {
  constexpr size_t kMost = 16, kMaxBytes = 256;
  if (request.require_size() > static_cast<int>(kMost)) return absl::InvalidArgumentError("require: more than 16");
  for (const auto& [key, value] : request.require()) {
    if (key.empty() || value.empty() || key.size() + value.size() > kMaxBytes) {
      return absl::InvalidArgumentError("require: a name and a value, together at most 256 bytes");
    }
  }
  return absl::OkStatus();
}

// `runs_as`: the job that does the work.
LogLine SubmittedLine(const JobRow& job, const std::string& runs_as, const std::string& trace,
                      const v1::SubmitResponse& response) {
  return {LogLevel::kInfo,
          "submitted",
          {{"job", runs_as},
           {"submission", job.id},
           {"model", job.model_name},
           {"target", job.target},
           {"client", job.client_id},
           {"submission_trace", trace},
           {"answer", response.from_store() ? "from the store"
                      : response.joined()   ? "joined"
                                            : "queued"}}};
}

}  // namespace

absl::StatusOr<std::optional<AttachedWorker>> JobRunner::KnownDevice(const DeviceWish& wish) {
  std::optional<AttachedWorker> device = farm_->FindDevice(wish);
  if (device.has_value()) return device;
  const Target wanted = ParseTarget(wish.target);
  ASSIGN_OR_RETURN(std::optional<WorkerRow> row, store_->LatestWorker(wanted.kind));
  if (row.has_value()) {
    ASSIGN_OR_RETURN(DeviceModel model, DeviceModelFromJson(row->device_model_json));
    AttachedWorker seen;
    seen.id = row->id, seen.name = row->name, seen.device = std::move(model);
    seen.fingerprint = row->fingerprint;
    seen.measure_kinds = {row->device_kind};
    if (wish.Fits(seen)) return seen;
  }
  if (absl::StatusOr<DeviceModel> model = StoredDevice(wish.target); model.ok()) {
    AttachedWorker stored;
    stored.fingerprint = model->Fingerprint();
    stored.device = *std::move(model);
    stored.measure_kinds = {wanted.kind};
    if (wish.Fits(stored)) return stored;
  }
  return std::nullopt;
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
  RETURN_IF_ERROR(CheckRequirements(request));
  if (std::abs(request.priority()) > kMostPriority) {
    return absl::InvalidArgumentError(absl::StrCat("priority: ", request.priority(), " is not in -100..100"));
  }
  if (request.request_id().size() > kMaxRequestIdBytes) {
    return absl::InvalidArgumentError("request_id: longer than 64 characters");
  }
  if (!request.trace_id().empty() && !IsTraceId(request.trace_id())) {
    return absl::InvalidArgumentError("trace_id: 32 lower-case hex digits, not all zero");
  }
  const DeviceWish wish = WishOf(request, options.target);
  ASSIGN_OR_RETURN(std::optional<AttachedWorker> device, KnownDevice(wish));
  if (!device.has_value() && farm_->AttachedKinds() == "none") {
    device = farm_->AwaitDevice(wish, started_ + options_.first_worker_grace - options_.clock(), hung_up);
  }
  const std::string kind = ParseTarget(options.target).kind;
  if (!device.has_value() && options_.is_expected && options_.is_expected(kind)) {
    device =
        farm_->AwaitDevice(wish, options_.first_worker_grace, [&] { return hung_up() || !options_.is_expected(kind); });
  }
  if (!device.has_value() && options.target != "cpu") {
    // A job may wait for another worker of a target that is there.
    ASSIGN_OR_RETURN(const std::optional<AttachedWorker> any_device, KnownDevice(options.target));
    if (!any_device.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat("no worker for target '", options.target,
                                                        "'; kinds attached: ", farm_->AttachedKinds(),
                                                        "; without one: ", absl::StrJoin(StoredTargets(), ", ")));
    }
  }
  Checked checked{std::move(options), device.value_or(AttachedWorker{})};
  if (device.has_value()) RETURN_IF_ERROR(TakeProfiledRates(&checked.device.device));
  return checked;
}

bool JobRunner::IsAttached(const AttachedWorker& device) const {
  return farm_->WorkersThatOffer(MeasureRequirement(device.device.kind, device.fingerprint)) > 0;
}

void JobRunner::AwaitFirstWorker(const DeviceWish& wish, const std::function<bool()>& cancelled) const {
  const absl::Time grace_end = started_ + options_.first_worker_grace;
  const std::string kind = ParseTarget(wish.target).kind;
  farm_->AwaitDevice(wish, options_.first_worker_grace, [&] {
    const bool expected = options_.is_expected && options_.is_expected(kind);
    return cancelled() || (options_.clock() > grace_end && !expected);
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

absl::Status JobRunner::CountIn(const std::string& owner) {
  absl::MutexLock lock(&mutex_);
  const auto it = in_flight_.try_emplace(owner, 0).first;
  if (it->second < options_.max_in_flight) {
    ++it->second;
    return absl::OkStatus();
  }
  return RetryAfter(absl::ResourceExhaustedError(
                        absl::StrCat("caller '", owner, "' has ", it->second,
                                     " jobs in flight, as many as one may have; submit again when some have ended")),
                    kPauseOfACaller);
}

absl::StatusOr<v1::SubmitResponse> JobRunner::Submit(v1::SubmitRequest request, const std::string& owner,
                                                     const std::function<bool()>& hung_up) {
  if (!request.request_id().empty()) {
    absl::StatusOr<v1::SubmitResponse> again = AnswerAgain(owner, request.request_id());
    if (!absl::IsNotFound(again.status())) return again;
  }
  RETURN_IF_ERROR(CountIn(owner));
  auto count_out = absl::MakeCleanup([&] {
    absl::MutexLock lock(&mutex_);
    CountOut(owner);
  });
  if (request.trace_id().empty()) request.set_trace_id(NewTraceId());
  ASSIGN_OR_RETURN(const Checked checked, Check(request, hung_up));
  JobRow job;
  job.id = NewJobId();
  job.key = JobKey(request, checked.options, checked.device.fingerprint);
  job.model_name = CutMessage(request.model_name()).substr(0, 255);
  job.target = checked.options.target;
  job.client_id = CutMessage(request.client_id()).substr(0, 255);
  job.owner = owner;
  job.request_id = request.request_id();
  job.priority = request.priority();
  job.request = request.SerializeAsString();
  NameModel(request, &job);
  job.created_ms = UnixMillisNow();
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
    const DeviceWish wish = WishOf(request, checked.options.target);
    v1::JobEvent event = MakeJobEvent(
        v1::SUCCEEDED, "write",
        ChoiceInWords(wish, checked.device, farm_->OtherDevices(wish, checked.device.fingerprint)));
    const v1::Checks checks = ChecksFor(request, result->checks, NoWorkerFor(checked.device.device));
    job.checks = checks.SerializeAsString();
    if (!job.checks.empty()) *event.mutable_checks() = checks;
    event.mutable_account()->ParseFromString(job.account);
    *event.mutable_bundle() = BundleInfoOf(job.bundle_digest, job.bundle_bytes, job.key);
    const absl::StatusOr<std::string> inserted = store_->InsertJob(job, event.SerializeAsString());
    if (absl::IsAlreadyExists(inserted.status())) return AnswerAgain(owner, request.request_id());
    ASSIGN_OR_RETURN(const std::string id, inserted);
    response.set_job_id(job.id);
    response.set_joined(id != job.id);
    response.set_from_store(id == job.id);
    response.set_state(id == job.id ? v1::SUCCEEDED : v1::QUEUED);
    metrics_->Count(Metric::kJobs, {{"outcome", "from_store"}});
    response.set_trace_id(request.trace_id());
    options_.log(SubmittedLine(job, id, request.trace_id(), response));
    if (id != job.id) Join(id, request);
    return response;
  }
  metrics_->Count(Metric::kCacheRequests, {{"tier", "result"}, {"result", to_check ? "hit" : "miss"}});
  // Who waits for a worker learns so at once, before the job has a place.
  const DeviceWish wish = WishOf(request, checked.options.target);
  const bool has_worker = farm_->FindDevice(wish).has_value();
  const v1::JobEvent event = MakeJobEvent(v1::QUEUED, "queued", has_worker ? "" : NoDeviceInWords(wish));
  BeginLog(job.id, request.trace_id());
  const absl::StatusOr<std::string> inserted = store_->InsertJob(job, event.SerializeAsString());
  if (!inserted.ok()) EndLog(job.id);
  // The first of two equal requests at once has it.
  if (absl::IsAlreadyExists(inserted.status())) return AnswerAgain(owner, request.request_id());
  ASSIGN_OR_RETURN(const std::string id, inserted);
  response.set_job_id(job.id);
  response.set_joined(id != job.id);
  response.set_from_store(to_check && id == job.id);
  response.set_state(v1::QUEUED);
  if (id != job.id) EndLog(job.id);
  if (options_.logs != nullptr) response.set_trace_id(options_.logs->TraceOf(id));
  if (response.trace_id().empty()) response.set_trace_id(request.trace_id());
  options_.log(SubmittedLine(job, id, request.trace_id(), response));
  if (id != job.id) {
    Join(id, request);
    return response;
  }
  std::move(count_out).Cancel();  // Loop counts it out
  absl::MutexLock lock(&mutex_);
  Enqueue(job, /*told=*/!has_worker);
  return response;
}

absl::StatusOr<v1::SubmitResponse> JobRunner::AnswerAgain(const std::string& owner, const std::string& request_id) {
  ASSIGN_OR_RETURN(const JobRow job, store_->FindRequest(owner, request_id));
  v1::SubmitResponse response;
  response.set_job_id(job.id);
  response.set_key(job.key);
  response.set_state(static_cast<v1::JobState>(job.state));
  response.set_joined(job.runs_as != job.id);
  response.set_from_store(job.state == JobPhase::kSucceeded && job.finished_ms == job.created_ms);
  response.set_trace_id(TraceOf(job));
  options_.log({LogLevel::kInfo, "submitted again", {{"job", job.runs_as}, {"submission", job.id}}});
  return response;
}

absl::StatusOr<v1::PlanResponse> JobRunner::Plan(const v1::SubmitRequest& request,
                                                 const std::function<bool()>& hung_up) {
  auto leave = absl::MakeCleanup([this] { --plans_running_; });
  if (++plans_running_ > kMaxPlansAtOnce) {
    return RetryAfter(absl::ResourceExhaustedError(absl::StrCat(kMaxPlansAtOnce, " plans are being made; try again")),
                      kPauseOfACaller);
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
  v1::JobEvent event = MakeJobEvent(v1::CANCELLED, "write", "");
  *event.mutable_error() = ErrorToProto(absl::CancelledError("cancelled"));
  ASSIGN_OR_RETURN(const Store::Leaving leaving,
                   store_->LeaveJob(submission_id, event.time_ms(), event.SerializeAsString(), event.error().code(),
                                    event.error().message()));
  if (leaving.ended) {
    bool never_ran = false;
    {
      absl::MutexLock lock(&mutex_);
      if (auto running = running_.find(job.runs_as); running != running_.end()) running->second->cancelled = true;
      const std::optional<std::string> waited = Dequeue(job.runs_as);
      if (waited.has_value()) CountOut(*waited);
      never_ran = waited.has_value();
    }
    metrics_->Count(Metric::kJobs, {{"outcome", "cancelled"}});
    options_.log({LogLevel::kInfo, "cancelled", {{"job", job.runs_as}}});
    if (never_ran) EndLog(job.runs_as);
  }
  if (leaving.left && !leaving.ended) {
    const absl::StatusOr<JobRow> goes_on = store_->GetJob(job.runs_as);
    absl::MutexLock lock(&mutex_);
    if (goes_on.ok()) SetPriority(*goes_on);
  }
  hub_.Notify(job.runs_as);
  return store_->FindSubmission(submission_id);
}

}  // namespace fusion
