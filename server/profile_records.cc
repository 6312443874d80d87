#include "server/profile_records.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

std::string InWords(Standing standing, bool quarantined) {
  if (quarantined) return "quarantined";
  switch (standing) {
    case Standing::kBelieved:
      return "believed";
    case Standing::kConfirmed:
      return "confirmed";
    case Standing::kChecked:
      return "checked";
    case Standing::kSingleSource:
      return "single source";
    case Standing::kImported:
      return "imported";
  }
  return "";
}

bool IsKey(const std::string& key) {
  return key.size() == 64 && key.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool IsTime(double ns) { return std::isfinite(ns) && ns >= 0; }

// Is it what a division by it, or a logarithm of it, may rely on?
bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

bool IsThreads(int threads) { return threads >= 1 && threads <= 1024; }

bool AreTexts(std::initializer_list<const std::string*> texts) {
  constexpr size_t kMostText = 4096;
  return std::all_of(texts.begin(), texts.end(), [](const std::string* text) { return text->size() <= kMostText; });
}

// Older servers name no source of measurements, and no server one of what its own workers measured. The worker's name,
// which stands before its id, is one.
std::string ImportedSource(const std::string& source, const std::string& worker) {
  if (absl::StartsWith(source, kImportedSource)) return source;
  return absl::StrCat(kImportedSource, source.empty() ? worker.substr(0, worker.find('/')) : source);
}

}  // namespace

v1::Measurement ToProto(const MeasurementRow& row) {
  v1::Measurement proto;
  proto.set_question_key(row.question_key);
  proto.set_measurement_key(row.measurement_key);
  proto.set_device_fingerprint(row.device_fingerprint);
  proto.set_description(row.description);
  proto.set_samples(row.samples);
  proto.set_min_ns(row.min_ns);
  proto.set_median_ns(row.median_ns);
  proto.set_p90_ns(row.p90_ns);
  *proto.mutable_samples_ns() = {row.samples_ns.begin(), row.samples_ns.end()};
  proto.set_worker(row.worker);
  proto.set_toolchain(row.toolchain);
  proto.set_time_ms(row.time_ms);
  proto.set_model_ns(row.model_ns);
  proto.set_workload(row.workload);
  proto.set_structure(row.structure);
  proto.set_choices(row.choices);
  proto.set_origin(row.origin);
  proto.set_task(row.task);
  proto.set_fence(row.fence);
  proto.set_item(row.item);
  proto.set_source(row.source);
  proto.set_standing(InWords(row.standing, row.quarantined));
  return proto;
}

v1::ProfiledDevice ToProto(const DeviceRow& row) {
  v1::ProfiledDevice proto;
  proto.set_fingerprint(row.fingerprint);
  proto.set_model_json(row.model_json);
  proto.set_time_ms(row.time_ms);
  proto.set_measurements(row.measurements);
  return proto;
}

v1::ProfiledComparison ToProto(const PlanComparisonRow& row) {
  v1::ProfiledComparison proto;
  proto.set_plan_key(row.plan_key);
  proto.set_reference_key(row.reference_key);
  proto.set_device_fingerprint(row.device_fingerprint);
  proto.set_description(row.description);
  proto.set_threads(row.threads);
  proto.set_rounds(row.rounds);
  proto.set_ratio(row.ratio);
  proto.set_ratio_low(row.ratio_low);
  proto.set_ratio_high(row.ratio_high);
  proto.set_median_ns(row.median_ns);
  proto.set_reference_ns(row.reference_ns);
  proto.set_model_ns(row.model_ns);
  proto.set_reference_model_ns(row.reference_model_ns);
  proto.set_worker(row.worker);
  proto.set_time_ms(row.time_ms);
  proto.set_origin(row.origin);
  proto.set_task(row.task);
  proto.set_fence(row.fence);
  proto.set_item(row.item);
  proto.set_source(row.source);
  proto.set_standing(InWords(row.standing, row.quarantined));
  return proto;
}

v1::ProfiledPlan ToProto(const PlanRow& row) {
  v1::ProfiledPlan proto;
  proto.set_bundle_digest(row.bundle_digest);
  proto.set_device_fingerprint(row.device_fingerprint);
  proto.set_model_name(row.model_name);
  proto.set_planner(row.planner);
  proto.set_threads(row.threads);
  proto.set_model_ns(row.model_ns);
  proto.set_median_ns(row.median_ns);
  proto.set_p25_ns(row.p25_ns);
  proto.set_p75_ns(row.p75_ns);
  proto.set_worker(row.worker);
  proto.set_time_ms(row.time_ms);
  proto.set_source(row.source);
  proto.set_quarantined(row.quarantined);
  return proto;
}

absl::StatusOr<MeasurementRow> ImportedRow(const v1::Measurement& proto) {
  // A task without its origin would pass for one of this database.
  bool good = proto.origin().empty() == proto.task().empty() && IsKey(proto.question_key()) &&
              !proto.device_fingerprint().empty() && proto.samples() > 0 && IsTime(proto.min_ns()) &&
              IsTime(proto.median_ns()) && IsTime(proto.p90_ns()) && IsTime(proto.model_ns()) &&
              (proto.workload().empty() || IsKey(proto.workload())) &&
              (proto.structure().empty() || IsKey(proto.structure())) && proto.samples_ns_size() <= 64;
  for (const double ns : proto.samples_ns()) good = good && IsTime(ns);
  good = good && AreTexts({&proto.measurement_key(), &proto.device_fingerprint(), &proto.description(), &proto.worker(),
                           &proto.toolchain(), &proto.choices(), &proto.origin(), &proto.task(), &proto.source()});
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat("not a measurement: question_key '",
                                                   proto.question_key().substr(0, 64), "', ", proto.samples(),
                                                   " samples, median ", proto.median_ns(), " ns"));
  }
  return MeasurementRow{proto.question_key(),
                        proto.measurement_key(),
                        proto.device_fingerprint(),
                        proto.description(),
                        proto.samples(),
                        proto.min_ns(),
                        proto.median_ns(),
                        proto.p90_ns(),
                        {proto.samples_ns().begin(), proto.samples_ns().end()},
                        proto.worker(),
                        proto.toolchain(),
                        proto.time_ms(),
                        proto.model_ns(),
                        proto.workload(),
                        proto.structure(),
                        proto.choices(),
                        proto.origin(),
                        proto.task(),
                        proto.fence(),
                        proto.item(),
                        /*id=*/0,
                        ImportedSource(proto.source(), proto.worker()),
                        Standing::kImported};
}

absl::StatusOr<PlanComparisonRow> ImportedRow(const v1::ProfiledComparison& proto) {
  bool good = proto.origin().empty() == proto.task().empty() && IsKey(proto.plan_key()) &&
              IsKey(proto.reference_key()) && proto.plan_key() != proto.reference_key() &&
              !proto.device_fingerprint().empty() && IsThreads(proto.threads()) && proto.rounds() > 0 &&
              IsTime(proto.model_ns()) && IsTime(proto.reference_model_ns()) && proto.ratio_low() <= proto.ratio() &&
              proto.ratio() <= proto.ratio_high();
  for (const double value :
       {proto.ratio(), proto.ratio_low(), proto.ratio_high(), proto.median_ns(), proto.reference_ns()}) {
    good = good && IsPositive(value);
  }
  good = good && AreTexts({&proto.device_fingerprint(), &proto.description(), &proto.worker(), &proto.origin(),
                           &proto.task(), &proto.source()});
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a comparison of plans: plan_key '", proto.plan_key().substr(0, 64), "', reference_key '",
                     proto.reference_key().substr(0, 64), "', ", proto.rounds(), " rounds, ratio ", proto.ratio()));
  }
  PlanComparisonRow row;
  row.plan_key = proto.plan_key(), row.reference_key = proto.reference_key();
  row.device_fingerprint = proto.device_fingerprint();
  row.description = proto.description();
  row.threads = proto.threads();
  row.rounds = proto.rounds();
  row.ratio = proto.ratio(), row.ratio_low = proto.ratio_low(), row.ratio_high = proto.ratio_high();
  row.median_ns = proto.median_ns(), row.reference_ns = proto.reference_ns();
  row.model_ns = proto.model_ns(), row.reference_model_ns = proto.reference_model_ns();
  row.worker = proto.worker();
  row.time_ms = proto.time_ms();
  row.origin = proto.origin(), row.task = proto.task(), row.fence = proto.fence(), row.item = proto.item();
  row.source = ImportedSource(proto.source(), proto.worker());
  row.standing = Standing::kImported;
  return row;
}

absl::StatusOr<PlanRow> ImportedRow(const v1::ProfiledPlan& proto) {
  const bool good =
      IsKey(proto.bundle_digest()) && !proto.device_fingerprint().empty() && IsThreads(proto.threads()) &&
      IsTime(proto.model_ns()) && IsPositive(proto.p25_ns()) && IsPositive(proto.p75_ns()) &&
      proto.p25_ns() <= proto.median_ns() && proto.median_ns() <= proto.p75_ns() &&
      AreTexts({&proto.device_fingerprint(), &proto.model_name(), &proto.planner(), &proto.worker(), &proto.source()});
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat("not a measurement of a whole plan: bundle_digest '",
                                                   proto.bundle_digest().substr(0, 64), "', ", proto.threads(),
                                                   " threads, median ", proto.median_ns(), " ns"));
  }
  return PlanRow{proto.bundle_digest(), proto.device_fingerprint(),
                 proto.model_name(),    proto.planner(),
                 proto.threads(),       proto.model_ns(),
                 proto.median_ns(),     proto.p25_ns(),
                 proto.p75_ns(),        proto.worker(),
                 proto.time_ms(),       ImportedSource(proto.source(), proto.worker())};
}

}  // namespace fusion
