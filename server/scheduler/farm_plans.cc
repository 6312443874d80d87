#include "server/scheduler/farm_plans.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "proto/worker.pb.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(10);  // fetching the bundle included
constexpr absl::Duration kQueueTimeout = absl::Seconds(45);

void SetOrigin(const PlanQuestion& question, v1::PlanOrigin* origin) {
  origin->set_key(question.key);
  origin->set_description(question.description);
  origin->set_model_ns(question.typical_ns);
}

bool EndsTheJob(const absl::Status& status) { return absl::IsCancelled(status) || absl::IsUnavailable(status); }

}  // namespace

absl::StatusOr<std::string> FarmPlans::Measure(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                               absl::Span<const size_t> open, PlanBundler& bundler) {
  const DeviceModel& device = job_.device.device;
  const std::string requirement = ModelRequirement(device.kind, job_.device.fingerprint);
  if (job_.farm->WorkersThatOffer(requirement) == 0) {
    return absl::StrCat("no worker with the device is attached (", device.kind, ": ", device.name, ")");
  }
  // Several programs of one job (specialisations) are compared one after another.
  const std::string path = absl::StrCat(folder_, "/plans.fusion");
  auto cleaner = absl::MakeCleanup([&] {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  });
  if (const absl::Status written = bundler.WriteBundle(open, path); !written.ok()) {
    if (EndsTheJob(written)) return written;
    return absl::StrCat("the plans cannot be built for a measurement: ", std::string(written.message()));
  }
  ASSIGN_OR_RETURN(const auto lent, job_.artifacts->Lend(path));
  v1::MeasurePayload payload;
  v1::PlanRun& run = *payload.mutable_plans();
  run.set_bundle_digest(lent->artifact().digest);
  run.set_bundle_size_bytes(lent->artifact().size_bytes);
  SetOrigin(reference, run.add_plans());
  std::string key = absl::StrCat("plans ", job_.threads, " ", requirement, " ", reference.key);
  std::string description = reference.description;
  for (const size_t plan : open) {
    SetOrigin(plans[plan], run.add_plans());
    absl::StrAppend(&key, " ", plans[plan].key);
    absl::StrAppend(&description, " against ", plans[plan].description);
  }
  FarmTask task;
  task.kind = TaskType::kMeasure;
  task.job = job_.id, task.trace = job_.trace;
  task.device_kind = device.kind;
  task.requirement = requirement;
  task.payload = payload.SerializeAsString();
  task.key = Sha256Hex(key);
  task.description = std::move(description);
  task.timeout = kTimeout;
  task.threads = job_.threads;
  job_.progress({"compare", 0, 0, absl::StrCat("running ", open.size() + 1, " plans in turns")});
  const FarmWait wait = job_.Wait(std::min(job_.queue_timeout, kQueueTimeout));
  ASSIGN_OR_RETURN(const std::vector<FarmOutcome> outcomes, job_.farm->RunAll({task}, wait));
  if (!outcomes[0].status.ok()) return std::string(outcomes[0].status.message());
  v1::MeasureResults results;
  if (!results.ParseFromString(outcomes[0].result)) {
    return absl::InternalError("the result of a comparison of plans changed after it was accepted");
  }
  return results.plans().not_done();
}

absl::Status FarmPlans::CompareImports(const std::string& reference, const std::vector<std::string>& keys,
                                       const std::map<size_t, PlanComparisonRow>& imported,
                                       std::vector<std::optional<PlanComparisonRow>>* known) {
  if (imported.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto own, job_.store->PlanComparisons(reference, keys, /*also_imported=*/false));
  for (const auto& [p, row] : imported) {
    if (!own[p].has_value()) continue;  // nobody could measure it: the imported row counts
    (*known)[p] = own[p];
    job_.farm->CompareImport(row.source, row.description, row.ratio, own[p]->ratio, Judge::kSameRatio,
                             IsFirm(own[p]->standing));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanAnswers> FarmPlans::Compare(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                               PlanBundler& bundler) {
  std::vector<std::string> keys;
  for (const PlanQuestion& plan : plans) keys.push_back(plan.key);
  ASSIGN_OR_RETURN(auto known, job_.store->PlanComparisons(reference.key, keys));
  std::vector<size_t> open;
  // A comparison by somebody who is doubted is made again, where a worker can.
  const std::set<std::string> doubted =
      job_.farm->ImportsToCheck(ModelRequirement(job_.device.device.kind, job_.device.fingerprint));
  std::map<size_t, PlanComparisonRow> imported;
  for (size_t p = 0; p < plans.size(); ++p) {
    if (known[p].has_value() && known[p]->standing == Standing::kImported && doubted.count(known[p]->source) > 0) {
      imported[p] = *known[p];
      known[p].reset();
    }
    if (!known[p].has_value()) open.push_back(p);
  }
  const auto count = [&](const char* source, size_t answers) {
    if (answers > 0) job_.metrics->Count(Metric::kPlanComparisons, {{"source", source}}, answers);
  };
  count("database", plans.size() - open.size());
  PlanAnswers answers;
  if (!open.empty()) {
    ASSIGN_OR_RETURN(answers.not_measured, Measure(reference, plans, open, bundler));
    ASSIGN_OR_RETURN(known, job_.store->PlanComparisons(reference.key, keys));
    RETURN_IF_ERROR(CompareImports(reference.key, keys, imported, &known));
    const auto measured = std::count_if(open.begin(), open.end(), [&](size_t p) { return known[p].has_value(); });
    count("measured", static_cast<size_t>(measured));
    count("none", open.size() - static_cast<size_t>(measured));
  }
  for (const std::optional<PlanComparisonRow>& row : known) {
    auto& answer = answers.comparisons.emplace_back();
    if (!row.has_value()) continue;
    answer =
        PlanComparison{row->ratio, row->ratio_low, row->ratio_high, row->median_ns, row->reference_ns, row->rounds};
  }
  return answers;
}

}  // namespace fusion
