#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/cost/device_model.h"
#include "proto/profile.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "server/auth/guard.h"
#include "server/grpc_status.h"
#include "server/jobs/job_runner.h"
#include "server/list_pages.h"
#include "server/scheduler/model_error_of.h"
#include "server/services.h"
#include "server/stream_places.h"

namespace fusion {
namespace {

std::string InWords(const MeasurementRow& row) {
  if (row.quarantined) return "quarantined";
  switch (row.standing) {
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
  proto.set_standing(InWords(row));
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

v1::ModelErrors ToProto(const ModelError& error) {
  v1::ModelErrors proto;
  proto.set_count(error.kernels);
  proto.set_rank_correlation(error.rank_correlation);
  proto.set_median_ratio(error.median_ratio);
  proto.set_median_error(error.median_error);
  proto.set_factor(error.factor);
  return proto;
}

constexpr char kImported[] = "imported/";

absl::StatusOr<MeasurementRow> FromProto(const v1::Measurement& proto) {
  constexpr size_t kMostText = 4096;
  const auto is_key = [](const std::string& key) {
    return key.size() == 64 && key.find_first_not_of("0123456789abcdef") == std::string::npos;
  };
  const auto is_time = [](double ns) { return std::isfinite(ns) && ns >= 0; };
  // A task without its origin would pass for one of this database.
  bool good = proto.origin().empty() == proto.task().empty() && is_key(proto.question_key()) &&
              !proto.device_fingerprint().empty() && proto.samples() > 0 && is_time(proto.min_ns()) &&
              is_time(proto.median_ns()) && is_time(proto.p90_ns()) && is_time(proto.model_ns()) &&
              (proto.workload().empty() || is_key(proto.workload())) &&
              (proto.structure().empty() || is_key(proto.structure())) && proto.samples_ns_size() <= 64;
  for (const double ns : proto.samples_ns()) good = good && is_time(ns);
  for (const std::string* text :
       {&proto.measurement_key(), &proto.device_fingerprint(), &proto.description(), &proto.worker(),
        &proto.toolchain(), &proto.choices(), &proto.origin(), &proto.task(), &proto.source()}) {
    good = good && text->size() <= kMostText;
  }
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat("not a measurement: question_key '",
                                                   proto.question_key().substr(0, 64), "', ", proto.samples(),
                                                   " samples, median ", proto.median_ns(), " ns"));
  }
  // Older servers name no source; the worker's name, which stands before its id, is one.
  std::string source = proto.source().empty() ? proto.worker().substr(0, proto.worker().find('/')) : proto.source();
  if (!absl::StartsWith(source, kImported)) source = absl::StrCat(kImported, source);
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
                        std::move(source),
                        Standing::kImported};
}

class ProfileService : public v1::Profile::Service {
 public:
  ProfileService(Guard* guard, Store* store, JobRunner* jobs, StreamPlaces* streams)
      : guard_(guard), store_(store), jobs_(jobs), streams_(streams) {}

  grpc::Status Stats(grpc::ServerContext* context, const v1::ProfileStatsRequest*,
                     v1::ProfileStats* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Profile/Stats");
    if (!permit.ok()) return ToGrpc(permit.status());
    absl::StatusOr<ProfileCounts> counts = store_->CountMeasurements();
    if (!counts.ok()) return ToGrpc(counts.status());
    response->set_measurements(counts->measurements);
    response->set_questions(counts->questions);
    response->set_devices(counts->devices);
    response->set_oldest_ms(counts->oldest_ms);
    response->set_newest_ms(counts->newest_ms);
    response->set_from_database(jobs_->sources().database);
    response->set_from_measured(jobs_->sources().measured);
    response->set_from_model(jobs_->sources().model);
    const absl::StatusOr<ModelError> error = ModelErrorOf(*store_, "");
    if (!error.ok()) return ToGrpc(error.status());
    response->set_model_kernels(error->kernels);
    response->set_model_rank_correlation(error->rank_correlation);
    response->set_model_median_ratio(error->median_ratio);
    response->set_model_median_error(error->median_error);
    response->set_model_factor(error->factor);
    return ToGrpc(AddDevices(response));
  }

  grpc::Status Query(grpc::ServerContext* context, const v1::ProfileQueryRequest* request,
                     v1::ProfileQueryResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Profile/Query");
    if (!permit.ok()) return ToGrpc(permit.status());
    // The response is also bounded in bytes: a receiver accepts at most 4 MiB.
    constexpr size_t kMaxResponseBytes = 3 << 20;
    const absl::StatusOr<ListCursor> cursor = ListCursorOf(request->page_token());
    if (!cursor.ok()) return ToGrpc(cursor.status());
    const int limit = PageLimit(request->limit(), 100, 10000);
    MeasurementFilter filter{request->key_prefix(), request->contains(), request->device_fingerprint(), limit + 1};
    if (!request->page_token().empty()) filter.before_id = cursor->number;
    size_t bytes = 0;
    int64_t last_id = 0;
    bool more = false;
    const absl::Status scanned = store_->ScanMeasurements(filter, [&](const MeasurementRow& row) {
      more = more || bytes > kMaxResponseBytes || response->measurements_size() == limit;
      if (more) return;
      *response->add_measurements() = ToProto(row);
      bytes += response->measurements(response->measurements_size() - 1).ByteSizeLong();
      last_id = row.id;
    });
    if (more) response->set_next_page_token(PageTokenOf(ListCursor{last_id, ""}));
    return ToGrpc(scanned);
  }

  grpc::Status Export(grpc::ServerContext* context, const v1::ProfileExportRequest* request,
                      grpc::ServerWriter<v1::ProfileRecord>* writer) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Profile/Export");
    if (!permit.ok()) return ToGrpc(permit.status());
    const auto place = streams_->Take(permit->principal().OwnerName(), [context] { context->TryCancel(); });
    if (!place.ok()) return ToGrpc(place.status());
    const absl::StatusOr<std::vector<DeviceRow>> devices = store_->Devices(request->device_fingerprint());
    if (!devices.ok()) return ToGrpc(devices.status());
    bool open = true;
    v1::ProfileRecord record;
    for (const DeviceRow& device : *devices) {
      if (device.measurements == 0) continue;
      *record.mutable_device() = ToProto(device);
      open = open && writer->Write(record);
    }
    return ToGrpc(store_->ScanMeasurements({"", "", request->device_fingerprint(), std::numeric_limits<int>::max()},
                                           [&](const MeasurementRow& row) {
                                             *record.mutable_measurement() = ToProto(row);
                                             open = open && writer->Write(record);
                                             (*place)->Progress();
                                           }));
  }

  grpc::Status Import(grpc::ServerContext* context, grpc::ServerReader<v1::ProfileRecord>* reader,
                      v1::ProfileImportResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Profile/Import");
    if (!permit.ok()) return ToGrpc(permit.status());
    const auto place = streams_->Take(permit->principal().OwnerName(), [context] { context->TryCancel(); });
    if (!place.ok()) return ToGrpc(place.status());
    constexpr size_t kBatch = 1000;  // rows in a transaction
    std::vector<MeasurementRow> rows;
    const auto take = [&] {
      const absl::StatusOr<int64_t> added = store_->MergeMeasurements(rows);
      RETURN_IF_ERROR(added.status());
      response->set_added(response->added() + *added);
      response->set_known(response->known() + static_cast<int64_t>(rows.size()) - *added);
      rows.clear();
      return absl::OkStatus();
    };
    for (v1::ProfileRecord record; reader->Read(&record);) {
      (*place)->Progress();
      if (record.has_device()) {
        if (const absl::Status taken = TakeDevice(record.device()); !taken.ok()) return ToGrpc(taken);
        continue;
      }
      if (record.measurement().standing() == "quarantined") continue;
      absl::StatusOr<MeasurementRow> row = FromProto(record.measurement());
      if (!row.ok()) return ToGrpc(row.status());
      rows.push_back(*std::move(row));
      if (rows.size() < kBatch) continue;
      if (const absl::Status taken = take(); !taken.ok()) return ToGrpc(taken);
    }
    return ToGrpc(take());
  }

 private:
  absl::Status AddDevices(v1::ProfileStats* stats) {
    ASSIGN_OR_RETURN(const std::vector<DeviceRow> devices, store_->Devices(""));
    for (const DeviceRow& device : devices) {
      ASSIGN_OR_RETURN(const ModelError kernels, ModelErrorOf(*store_, device.fingerprint));
      ASSIGN_OR_RETURN(const ModelError plans, PlanErrorOf(*store_, device.fingerprint));
      if (kernels.kernels + plans.kernels == 0) continue;
      v1::DeviceModelErrors& errors = *stats->add_by_device();
      errors.set_fingerprint(device.fingerprint);
      if (const auto model = DeviceModelFromJson(device.model_json); model.ok()) errors.set_name(model->name);
      *errors.mutable_kernels() = ToProto(kernels);
      *errors.mutable_plans() = ToProto(plans);
    }
    return absl::OkStatus();
  }

  absl::Status TakeDevice(const v1::ProfiledDevice& device) {
    const absl::StatusOr<DeviceModel> model = DeviceModelFromJson(device.model_json());
    if (!model.ok() || device.fingerprint() != model->Fingerprint() || device.measurements() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("not a device: fingerprint '", device.fingerprint().substr(0, 64), "': ",
                       model.ok() ? "its model is of another device, or it counts measurements below zero"
                                  : model.status().message()));
    }
    return store_->MergeDevice({device.fingerprint(), device.model_json(), device.time_ms(), device.measurements()})
        .status();
  }

  Guard* const guard_;
  Store* const store_;
  JobRunner* const jobs_;
  StreamPlaces* const streams_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProfileService(Guard* guard, Store* store, JobRunner* jobs, StreamPlaces* streams) {
  return std::make_unique<ProfileService>(guard, store, jobs, streams);
}

}  // namespace fusion
