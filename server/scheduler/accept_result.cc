#include "server/scheduler/accept_result.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/worker.pb.h"
#include "runtime/base/quantile.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/scheduler/farm_builds.h"

namespace fusion {
namespace {

constexpr size_t kMaxStoredSamples = 64;
constexpr size_t kKeyLength = 64;

absl::StatusOr<AcceptedRows> AcceptBuild(ArtifactStore& artifacts, const std::string& payload_bytes,
                                         const std::string& result, const AttachedWorker& worker) {
  v1::BuildPayload payload;
  v1::BuildResult built;
  if (!payload.ParseFromString(payload_bytes) || !built.ParseFromString(result) ||
      built.binaries_size() != payload.units_size()) {
    return absl::UnavailableError("the worker's build result does not fit its task");
  }
  AcceptedRows accepted;
  for (const std::string& binary : built.binaries()) {
    if (binary.empty()) return absl::UnavailableError("the worker's build result holds an empty binary");
  }
  ASSIGN_OR_RETURN(const std::vector<Artifact> binaries,
                   artifacts.PutAll({built.binaries().begin(), built.binaries().end()}));
  for (int i = 0; i < payload.units_size(); ++i) {
    const v1::BuildUnitProto& unit = payload.units(i);
    const WorkerToolchain toolchain = worker.ToolchainOf(unit.kind());
    accepted.builds.push_back({BuildUnitKey({unit.kind(), unit.march(), unit.source()}),
                               binaries[static_cast<size_t>(i)].digest, absl::ToUnixMillis(absl::Now()),
                               toolchain.digest, worker.token, worker.trusted_builds, toolchain.reproduces});
  }
  return accepted;
}

// An estimate as the schema takes it; 0: unknown.
double Estimate(double ns) { return std::isfinite(ns) && ns > 0 ? ns : 0; }

absl::StatusOr<MeasurementRow> ToRow(const v1::MeasureItem& item, const v1::MeasureResult& measured) {
  if (measured.samples_ns().empty()) return absl::UnavailableError("the worker's measurement holds no samples");
  std::vector<double> samples(measured.samples_ns().begin(), measured.samples_ns().end());
  for (double sample : samples) {
    if (!std::isfinite(sample) || sample <= 0) {
      return absl::UnavailableError(absl::StrCat("the worker's measurement holds a sample of ", sample, " ns"));
    }
  }
  std::sort(samples.begin(), samples.end());
  MeasurementRow row;
  row.question_key = item.question_key();
  row.description = item.description();
  row.model_ns = Estimate(item.origin().model_ns());
  row.workload = item.origin().workload();
  row.structure = item.origin().structure();
  row.choices = item.origin().choices();
  row.samples = static_cast<int64_t>(samples.size());
  row.min_ns = samples.front(), row.median_ns = Quantile(samples, 0.5);
  row.p90_ns = Quantile(samples, 0.9);
  // The worker's own median is used if it is plausible beside these samples.
  if (measured.median_ns() >= row.min_ns * 0.5 && measured.median_ns() <= samples.back() * 2) {
    row.median_ns = measured.median_ns();
  }
  const size_t kept = std::min(samples.size(), kMaxStoredSamples);
  for (size_t i = 0; i < kept; ++i) {
    row.samples_ns.push_back(samples[kept == 1 ? 0 : i * (samples.size() - 1) / (kept - 1)]);
  }
  return row;
}

// Checks what a worker says about a whole model; nothing is stored here.
absl::Status CheckModelResult(const v1::ModelRun& model, const v1::MeasureResults& result) {
  constexpr size_t kMostBytes = 512 << 10;  // it becomes part of an event, and a message is limited to 4 MiB
  const auto is_time = [](double value) { return std::isfinite(value) && value > 0; };
  bool good = result.ByteSizeLong() <= kMostBytes;
  if (model.verify()) {
    const v1::ModelVerification& verified = result.verification();
    good = good && result.has_verification() &&
           (!verified.not_done().empty() ||
            (verified.verdict() != v1::OUTPUT_VERDICT_UNSPECIFIED && verified.outputs_size() > 0));
  } else {
    const v1::ModelMeasurement& measured = result.measurement();
    good = good && result.has_measurement();
    if (measured.not_done().empty()) {
      good = good && measured.rounds() > 0 && measured.threads() > 0;
      for (const double value : {measured.ratio(), measured.ratio_p25(), measured.ratio_p75()}) {
        good = good && is_time(value);
      }
      for (const v1::RunTimes* times : {&measured.bundle(), &measured.unfused()}) {
        good = good && times->runs() > 0 && is_time(times->min_ns()) && is_time(times->median_ns()) &&
               is_time(times->p25_ns()) && is_time(times->p75_ns());
        good = good && times->min_ns() <= times->p25_ns() && times->p25_ns() <= times->median_ns() &&
               times->median_ns() <= times->p75_ns();
      }
      good = good && measured.ratio_p25() <= measured.ratio() && measured.ratio() <= measured.ratio_p75();
    }
  }
  return good ? absl::OkStatus()
              : absl::UnavailableError("the worker's result for a whole model does not fit its task");
}

// Checks what a worker says about several plans.
absl::StatusOr<AcceptedRows> AcceptPlans(const v1::PlanRun& run, const v1::PlanMeasurement& measured,
                                         const TaskRow& task, const AttachedWorker& worker) {
  AcceptedRows accepted;
  if (!measured.not_done().empty()) return accepted;
  const auto is_time = [](double value) { return std::isfinite(value) && value > 0; };
  bool good = measured.plans_size() == run.plans_size() && run.plans_size() > 1 && measured.rounds() > 0;
  for (const v1::PlanTimes& plan : measured.plans()) {
    for (const double value : {plan.median_ns(), plan.ratio(), plan.ratio_low(), plan.ratio_high()}) {
      good = good && is_time(value);
    }
    good = good && plan.ratio_low() <= plan.ratio() && plan.ratio() <= plan.ratio_high();
    good = good && plan.rounds() >= 0 && plan.rounds() <= measured.rounds();
  }
  for (const v1::PlanOrigin& plan : run.plans()) good = good && plan.key().size() == kKeyLength;
  if (!good) return absl::UnavailableError("the worker's comparison of plans does not fit its task");
  for (int p = 1; p < run.plans_size(); ++p) {
    PlanComparisonRow& row = accepted.comparisons.emplace_back();
    const v1::PlanTimes& times = measured.plans(p);
    row.plan_key = run.plans(p).key();
    row.reference_key = run.plans(0).key();
    row.device_fingerprint = worker.fingerprint;
    row.description = run.plans(p).description();
    row.threads = std::max(1, task.threads);
    row.rounds = times.rounds() > 0 ? times.rounds() : measured.rounds();
    row.ratio = times.ratio(), row.ratio_low = times.ratio_low(), row.ratio_high = times.ratio_high();
    row.median_ns = times.median_ns();
    row.reference_ns = measured.plans(0).median_ns();
    row.model_ns = Estimate(run.plans(p).model_ns());
    row.reference_model_ns = Estimate(run.plans(0).model_ns());
    row.worker = absl::StrCat(worker.name, "/", worker.id);
    row.time_ms = absl::ToUnixMillis(absl::Now());
    row.task = task.id, row.fence = task.fence, row.item = p;
  }
  return accepted;
}

Canary ToCanary(const v1::MeasureResult& measured) {
  constexpr int kMostNumbers = 32;
  Canary canary;
  for (int i = 0; i < std::min(measured.outputs_size(), kMostNumbers); ++i) {
    canary.push_back(std::isfinite(measured.outputs(i)) ? measured.outputs(i)
                                                        : std::numeric_limits<double>::quiet_NaN());
  }
  return canary;
}

// Fewer different samples may come twice by chance.
std::string DigestOfSamples(const v1::MeasureResults& measured) {
  constexpr size_t kFewest = 5;
  std::set<double> different;
  Sha256 hash;
  const auto add = [&](const v1::MeasureResult& result) {
    for (const double sample : result.samples_ns()) {
      different.insert(sample);
      hash.Update(absl::StrCat(sample, " "));
    }
  };
  for (const v1::MeasureResult& result : measured.results()) add(result);
  add(measured.sentinel());
  return different.size() < kFewest ? "" : hash.FinishHex();
}

Testimony TestimonyOf(const v1::MeasurePayload& payload, const v1::MeasureResults& measured, const AcceptedRows& rows) {
  Testimony testimony;
  testimony.samples = DigestOfSamples(measured);
  if (!payload.canaries()) return testimony;
  for (const v1::MeasureResult& result : measured.results()) testimony.canaries.push_back(ToCanary(result));
  if (!payload.sentinel().empty()) {
    for (const double sample : measured.sentinel().samples_ns()) {
      if (!std::isfinite(sample) || sample <= 0) continue;
      testimony.sentinel_ns = testimony.sentinel_ns > 0 ? std::min(testimony.sentinel_ns, sample) : sample;
    }
    testimony.sentinel_canary = ToCanary(measured.sentinel());
    return testimony;
  }
  const bool is_short = rows.measurements.size() == 1 && rows.measurements[0].min_ns >= Judge::kShortestSentinel &&
                        rows.measurements[0].min_ns <= Judge::kLongestSentinel;
  if (is_short && !testimony.canaries[0].empty() && payload.items(0).bundle().size() <= Judge::kLargestSentinel) {
    testimony.candidate = payload.items(0).bundle();
  }
  return testimony;
}

absl::StatusOr<Accepted> AcceptMeasurement(const TaskRow& task, const std::string& payload_bytes,
                                           const std::string& result, const AttachedWorker& worker) {
  v1::MeasurePayload payload;
  v1::MeasureResults measured;
  if (!payload.ParseFromString(payload_bytes) || !measured.ParseFromString(result) ||
      measured.results_size() != payload.items_size()) {
    return absl::UnavailableError("the worker's measurement does not fit its task");
  }
  Accepted accepted;
  if (payload.has_model()) {
    RETURN_IF_ERROR(CheckModelResult(payload.model(), measured));
    return accepted;
  }
  if (payload.has_plans()) return AcceptPlans(payload.plans(), measured.plans(), task, worker);
  for (int i = 0; i < payload.items_size(); ++i) {
    ASSIGN_OR_RETURN(MeasurementRow row, ToRow(payload.items(i), measured.results(i)));
    row.measurement_key = task.payload_digest;
    row.task = task.id, row.fence = task.fence, row.item = i;
    row.device_fingerprint = worker.fingerprint;
    row.worker = absl::StrCat(worker.name, "/", worker.id);
    row.toolchain = worker.toolchain;
    row.time_ms = absl::ToUnixMillis(absl::Now());
    accepted.rows.measurements.push_back(std::move(row));
  }
  accepted.testimony = TestimonyOf(payload, measured, accepted.rows);
  return accepted;
}

}  // namespace

absl::StatusOr<Accepted> AcceptTaskResult(ArtifactStore& artifacts, const TaskRow& task, const std::string& payload,
                                          const std::string& result, const AttachedWorker& worker) {
  if (task.kind == TaskType::kBuild) return AcceptBuild(artifacts, payload, result, worker);
  return AcceptMeasurement(task, payload, result, worker);
}

}  // namespace fusion
