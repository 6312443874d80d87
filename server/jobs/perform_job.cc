// The part of JobRunner that does the work of one job.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "server/artifacts/model_files.h"
#include "server/jobs/device_choice.h"
#include "server/jobs/job_checks.h"
#include "server/jobs/job_messages.h"
#include "server/jobs/job_runner.h"
#include "server/scheduler/farm_builds.h"
#include "server/scheduler/farm_plans.h"

namespace fusion {

absl::StatusOr<AttachedWorker> JobRunner::DeviceFor(const v1::SubmitRequest& request, const std::string& target,
                                                    const Hooks& hooks) {
  const DeviceWish wish = WishOf(request, target);
  ASSIGN_OR_RETURN(std::optional<AttachedWorker> device, KnownDevice(wish));
  if (!device.has_value()) {
    // It has gone since the job left the queue.
    hooks.gives_up_for("");
    return absl::CancelledError(NoDeviceInWords(wish));
  }
  if (const std::string choice = ChoiceInWords(wish, *device, farm_->OtherDevices(wish, device->fingerprint));
      !choice.empty()) {
    hooks.progress({"queued", 0, 0, choice});
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
  const absl::Time start = options_.clock();
  FarmOracle oracle(farm_job);
  FarmPlans plans(farm_job, folder);
  FarmToolchain toolchain(farm_job);
  const std::string path = absl::StrCat(folder, "/out.fusion");
  ASSIGN_OR_RETURN(const CompileAccount account,
                   compiler_.compile(files, options,
                                     {&farm_job.device.device, &oracle, &toolchain, hooks.progress, hooks.cancelled,
                                      &plans, farm_job.trace,
                                      [&](LogLine line) {
                                        line.fields.push_back({"job", farm_job.id});
                                        options_.log(line);
                                      }},
                                     path));
  LogLine times{LogLevel::kInfo, "compiled", {{"job", farm_job.id}}};
  for (const StageSeconds& stage : account.stages) {
    metrics_->Observe(Metric::kJobDuration, stage.seconds, {{"stage", stage.stage}});
    times.fields.push_back(
        {absl::StrReplaceAll(stage.stage, {{"-", "_"}, {" ", "_"}}) + "_s", absl::StrFormat("%.3f", stage.seconds)});
  }
  options_.log(times);
  ASSIGN_OR_RETURN(const Artifact bundle, artifacts_->Adopt(path, farm_job.tenant));
  metrics_->Observe(Metric::kBundleBytes, static_cast<double>(bundle.size_bytes));
  metrics_->Observe(Metric::kJobDuration, absl::ToDoubleSeconds(options_.clock() - start), {{"stage", "all"}});
  return ResultRow{key, bundle.digest, bundle.size_bytes, AccountToProto(account).SerializeAsString(), UnixMillisNow()};
}

absl::Status JobRunner::TakeKey(const std::string& key, const v1::SubmitRequest& request, const CompileOptions& options,
                                const Hooks& hooks, JobRow* job) {
  // A job whose key names a device keeps it, so that no two jobs wait for each other.
  if (job->key == key || job->key != JobKey(request, options, "")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string has_key, store_->GiveJobKey(job->claim(), key));
  if (has_key != job->id) {
    hooks.gives_up_for(has_key);
    return absl::CancelledError(absl::StrCat("job ", has_key, " compiles the same"));
  }
  job->key = key;
  return absl::OkStatus();
}

absl::StatusOr<ResultRow> JobRunner::Perform(JobRow* job, const v1::SubmitRequest& request, const std::string& folder,
                                             const Hooks& hooks, v1::Checks* checks) {
  ASSIGN_OR_RETURN(const CompileOptions options, OptionsFromProto(request.options(), compiler_.planners));
  ASSIGN_OR_RETURN(const AttachedWorker device, DeviceFor(request, options.target, hooks));
  const std::string key = JobKey(request, options, device.fingerprint);
  RETURN_IF_ERROR(TakeKey(key, request, options, hooks, job));
  RETURN_IF_ERROR(CheckChunksPresent(request, *artifacts_));
  ASSIGN_OR_RETURN(const ModelFiles files, AssembleModel(request, *artifacts_, folder));
  FarmJob farm_job = MakeFarmJob(job->id, device, options, request);
  farm_job.cancelled = hooks.cancelled_by_user;
  farm_job.progress = hooks.progress;
  farm_job.away = hooks.away, farm_job.gives_up = hooks.gives_up, farm_job.waited = hooks.waited;
  ASSIGN_OR_RETURN(std::optional<ResultRow> result, UsableResult(key, device));
  // A job that starts again with the server often needs nothing but a worker, which attaches a little later.
  if (result.has_value() && !IsAttached(device)) AwaitFirstWorker(WishOf(request, options.target), hooks.cancelled);
  if (!result.has_value()) {
    if (request.early_bundle()) {
      RETURN_IF_ERROR(OfferEarlyBundle(farm_job, request, files, options, folder, hooks));
    }
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

absl::Status JobRunner::OfferEarlyBundle(const FarmJob& farm_job, const v1::SubmitRequest& request,
                                         const ModelFiles& files, const CompileOptions& options,
                                         const std::string& folder, const Hooks& hooks) {
  const CompileOptions unfused = UnfusedForm(options);
  const std::string key = JobKey(request, unfused, farm_job.device.fingerprint);
  Hooks early_hooks = hooks;
  early_hooks.progress = [&](const ProgressEvent& event) {
    const bool building = event.stage == "build";
    hooks.progress({"early", building ? event.done : 0, building ? event.total : 0, "compiling the unfused form"});
  };
  FarmJob quiet = farm_job;  // its builds are a part of this stage
  quiet.progress = early_hooks.progress;
  ASSIGN_OR_RETURN(std::optional<ResultRow> early, UsableResult(key, farm_job.device));
  if (!early.has_value()) {
    absl::StatusOr<ResultRow> made = Compile(files, unfused, quiet, key, folder, early_hooks);
    if (!made.ok()) {
      if (hooks.cancelled()) return absl::CancelledError("cancelled");
      if (absl::IsUnavailable(made.status())) return made.status();
      AppendEvent(farm_job.id, {"early", 0, 0, absl::StrCat("no early bundle: ", made.status().message())},
                  v1::RUNNING);
      return absl::OkStatus();
    }
    early = *std::move(made);
  }
  v1::JobEvent event = MakeJobEvent(v1::RUNNING, "early", "the unfused bundle is ready; the job goes on");
  *event.mutable_early_bundle() = BundleInfoOf(early->bundle_digest, early->bundle_bytes, key);
  event.mutable_account()->ParseFromString(early->account);
  RETURN_IF_ERROR(store_->OfferEarlyBundle(ClaimOf(farm_job.id), *early, event.SerializeAsString()));
  hub_.Notify(farm_job.id);
  options_.log({LogLevel::kInfo, "offers an early bundle", {{"job", farm_job.id}, {"bundle", early->bundle_digest}}});
  return absl::OkStatus();
}

FarmJob JobRunner::MakeFarmJob(const std::string& job_id, const AttachedWorker& device, const CompileOptions& options,
                               const v1::SubmitRequest& request) {
  FarmJob job;
  job.id = job_id;
  job.trace = request.trace_id();
  job.tenant = request.tenant();
  job.farm = farm_, job.store = store_, job.artifacts = artifacts_, job.metrics = metrics_, job.sources = &sources_;
  job.device = device;
  job.threads = options.threads;
  job.queue_timeout = QueueTimeout(request);
  return job;
}

}  // namespace fusion
