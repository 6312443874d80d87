#include "server/jobs/job_checks.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/backends/backend.h"
#include "compiler/cost/host_device.h"
#include "compiler/cost/latency_oracle.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "server/jobs/job_messages.h"
#include "server/scheduler/farm_builds.h"

namespace fusion {
namespace {

// The reference of `fusionctl verify`.
CompileOptions StrictReference(const CompileOptions& options) {
  CompileOptions reference = UnfusedForm(options);
  reference.math = "strict";
  reference.precision = "fp32";
  reference.size = "any";
  reference.disabled_rules.clear();
  return reference;
}

std::string NameOf(const Farm& farm, const std::string& worker_id) {
  for (const Farm::WorkerStatusRow& row : farm.WorkerStatuses()) {
    if (row.worker.id == worker_id) return row.worker.name;
  }
  return worker_id;
}

bool EndsTheJob(const absl::Status& status) { return absl::IsCancelled(status) || absl::IsUnavailable(status); }

v1::Checks Parsed(const std::string& checks) {
  v1::Checks parsed;
  parsed.ParseFromString(checks);
  return parsed;
}

template <typename Check>
void SetProvenance(const FarmJob& job, const std::string& worker, absl::Time begin, Check* check) {
  check->set_worker(worker);
  check->set_device(job.device.device.name);
  check->set_fingerprint(job.device.fingerprint);
  check->set_time_ms(absl::ToUnixMillis(absl::Now()));
  check->set_seconds(absl::ToDoubleSeconds(SteadyNow() - begin));
}

}  // namespace

CompileOptions UnfusedForm(CompileOptions options) {
  options.planner = "none";
  options.tune = "off";
  return options;
}

MissingChecks MissingFrom(const std::string& known, const v1::SubmitRequest& request) {
  const v1::Checks checks = Parsed(known);
  return {request.measure() && !checks.has_measurement(), request.verify() && !checks.has_verification()};
}

v1::Checks ChecksFor(const v1::SubmitRequest& request, const std::string& known, const std::string& reason) {
  v1::Checks checks = Parsed(known);
  const MissingChecks missing = MissingFrom(known, request);
  if (missing.measure) checks.mutable_measurement()->set_not_done(reason);
  if (missing.verify) checks.mutable_verification()->set_not_done(reason);
  if (!request.measure()) checks.clear_measurement();
  if (!request.verify()) checks.clear_verification();
  return checks;
}

std::string NoWorkerFor(const DeviceModel& device) {
  return absl::StrCat("no worker with the device is attached (", device.kind, ": ", device.name, ")");
}

absl::StatusOr<JobChecks::Found> JobChecks::RunBeside(const CompileOptions& other, const DeviceModel& other_device,
                                                      const std::string& stage, const std::string& name) const {
  Found found;
  const DeviceModel& device = farm_job.device.device;
  if (farm_job.farm->WorkersThatOffer(ModelRequirement(device.kind, farm_job.device.fingerprint)) == 0) {
    found.not_done = NoWorkerFor(device);
    return found;
  }
  if (other_device.kind != device.kind && farm_job.farm->WorkersThatOffer(BuildRequirement(other_device.kind)) == 0) {
    found.not_done = absl::StrCat("no worker is attached that builds for ", other_device.kind, ", as the ", name,
                                  " needs; start one, or fusiond with --local-devices cpu,", device.kind);
    return found;
  }
  const std::string path = absl::StrCat(folder, "/", stage, ".fusion");
  ModelOracle estimates;  // the other form asks for no measurements
  const auto progress = [&](const ProgressEvent& event) {
    const bool building = event.stage == "build";
    farm_job.progress(
        {stage, building ? event.done : 0, building ? event.total : 0, absl::StrCat("compiling the ", name)});
  };
  FarmJob quiet = farm_job;  // its builds are a part of this stage
  quiet.progress = progress;
  quiet.needs_builds = false;  // without a builder the check is not done
  FarmToolchain builder(quiet);
  absl::StatusOr<CompileAccount> compiled =
      compile(files, other, {&other_device, &estimates, &builder, progress, cancelled}, path);
  if (!compiled.ok()) {
    if (cancelled()) return absl::CancelledError("cancelled");
    if (EndsTheJob(compiled.status())) return compiled.status();
    found.not_done = absl::StrCat("the ", name, " does not compile: ", std::string(compiled.status().message()));
    return found;
  }
  found.other = *std::move(compiled);
  ASSIGN_OR_RETURN(const auto lent, farm_job.artifacts->Lend(path));
  found.other_digest = lent->artifact().digest;
  v1::ModelRun run;
  run.set_bundle_digest(result.bundle_digest);
  run.set_bundle_size_bytes(result.bundle_bytes);
  run.set_other_digest(lent->artifact().digest);
  run.set_other_size_bytes(lent->artifact().size_bytes);
  run.set_verify(stage == "verify");
  farm_job.progress({stage, 0, 0, absl::StrCat("running the model and its ", name)});
  ASSIGN_OR_RETURN(const FarmOutcome outcome,
                   RunModelOnFarm(farm_job, run, absl::StrCat(stage, " ", files.model_name, " as a whole")));
  found.worker = NameOf(*farm_job.farm, outcome.worker);
  found.source = farm_job.farm->SourceOfWorker(outcome.worker);
  if (!outcome.status.ok()) {
    found.not_done = std::string(outcome.status.message());
    found.crashed = absl::IsInternal(outcome.status);
  } else if (!found.results.ParseFromString(outcome.result)) {
    return absl::InternalError("the result of a whole model changed after it was accepted");
  }
  return found;
}

absl::StatusOr<v1::ModelMeasurement> JobChecks::Measure(bool* lasts) const {
  const absl::Time begin = SteadyNow();
  ASSIGN_OR_RETURN(Found found, RunBeside(UnfusedForm(options), farm_job.device.device, "measure", "unfused form"));
  v1::ModelMeasurement measured = std::move(*found.results.mutable_measurement());
  *lasts = found.not_done.empty() || found.crashed;
  if (!found.not_done.empty()) measured.set_not_done(CutMessage(found.not_done));
  SetProvenance(farm_job, found.worker, begin, &measured);
  if (!measured.not_done().empty()) return measured;
  v1::Account account;
  account.ParseFromString(result.account);
  measured.mutable_bundle()->set_model_ns(account.estimate_ns());
  measured.mutable_unfused()->set_model_ns(found.other.estimate_ns);
  std::vector<PlanRow> rows;
  for (const bool fused : {true, false}) {
    const v1::RunTimes& times = fused ? measured.bundle() : measured.unfused();
    rows.push_back({fused ? result.bundle_digest : found.other_digest, measured.fingerprint(), files.model_name,
                    fused ? options.planner : "none", static_cast<int>(measured.threads()), times.model_ns(),
                    times.median_ns(), times.p25_ns(), times.p75_ns(), found.worker, measured.time_ms(), found.source});
  }
  RETURN_IF_ERROR(farm_job.store->AppendPlans(rows));
  return measured;
}

absl::StatusOr<v1::ModelVerification> JobChecks::Verify(bool* lasts) const {
  const absl::Time begin = SteadyNow();
  // The kernels of the host, on which a device is simulated, judge the simulation.
  const DeviceModel& device = farm_job.device.device;
  const Backend* backend = FindBackend(device.kind);
  const DeviceModel reference = backend != nullptr && backend->IsSimulated() ? HostOf(device) : device;
  ASSIGN_OR_RETURN(Found found, RunBeside(StrictReference(options), reference, "verify", "strict reference"));
  v1::ModelVerification verified = std::move(*found.results.mutable_verification());
  *lasts = found.not_done.empty() || found.crashed;
  if (!found.not_done.empty()) verified.set_not_done(CutMessage(found.not_done));
  // A process that crashes on every attempt is a finding about the bundle, unlike a worker that is not there.
  if (found.crashed) verified.set_verdict(v1::OUTPUT_NOT_COMPARED);
  SetProvenance(farm_job, found.worker, begin, &verified);
  return verified;
}

absl::Status JobChecks::Run(const MissingChecks& missing, v1::Checks* checks, v1::Checks* lasting) const {
  bool lasts = false;
  const auto outcome = [&](const std::string& check, const std::string& words) {
    farm_job.metrics->Count(Metric::kChecks, {{"check", check}, {"outcome", words}});
  };
  if (missing.measure) {
    absl::StatusOr<v1::ModelMeasurement> measured = Measure(&lasts);
    if (!measured.ok() && EndsTheJob(measured.status())) return measured.status();
    if (!measured.ok()) {
      checks->mutable_measurement()->set_not_done(CutMessage(measured.status().message()));
    } else {
      *checks->mutable_measurement() = *measured;
      if (lasts) *lasting->mutable_measurement() = *std::move(measured);
    }
    outcome("measure", checks->measurement().not_done().empty() ? "ok" : "not_done");
  }
  if (missing.verify) {
    absl::StatusOr<v1::ModelVerification> verified = Verify(&lasts);
    if (!verified.ok() && EndsTheJob(verified.status())) return verified.status();
    if (!verified.ok()) {
      checks->mutable_verification()->set_not_done(CutMessage(verified.status().message()));
    } else {
      *checks->mutable_verification() = *verified;
      if (lasts) *lasting->mutable_verification() = *std::move(verified);
    }
    const v1::ModelVerification& done = checks->verification();
    outcome("verify", !done.not_done().empty()             ? "not_done"
                      : done.verdict() == v1::OUTPUT_OK    ? "ok"
                      : done.verdict() == v1::OUTPUT_WRONG ? "wrong"
                                                           : "not_compared");
  }
  return absl::OkStatus();
}

}  // namespace fusion
