#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/cost/device_model.h"
#include "proto/profile.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "server/auth/guard.h"
#include "server/grpc_status.h"
#include "server/jobs/job_runner.h"
#include "server/list_pages.h"
#include "server/profile_records.h"
#include "server/scheduler/model_error_of.h"
#include "server/services.h"
#include "server/stream_places.h"

namespace fusion {
namespace {

v1::ModelErrors ToProto(const ModelError& error) {
  v1::ModelErrors proto;
  proto.set_count(error.kernels);
  proto.set_rank_correlation(error.rank_correlation);
  proto.set_median_ratio(error.median_ratio);
  proto.set_median_error(error.median_error);
  proto.set_factor(error.factor);
  return proto;
}

class ProfileService : public v1::Profile::Service {
 public:
  ProfileService(Guard* guard, Store* store, JobRunner* jobs, Farm* farm, StreamPlaces* streams)
      : guard_(guard), store_(store), jobs_(jobs), farm_(farm), streams_(streams) {}

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
    const auto send = [&] {
      open = open && writer->Write(record);
      (*place)->Progress();
    };
    absl::Status scanned = store_->ScanMeasurements(
        {"", "", request->device_fingerprint(), std::numeric_limits<int>::max()}, [&](const MeasurementRow& row) {
          *record.mutable_measurement() = ToProto(row);
          send();
        });
    if (scanned.ok() && request->plans()) {
      scanned = store_->ScanPlans(
          request->device_fingerprint(),
          [&](const PlanComparisonRow& row) {
            *record.mutable_comparison() = ToProto(row);
            send();
          },
          [&](const PlanRow& row) {
            *record.mutable_plan() = ToProto(row);
            send();
          });
    }
    return ToGrpc(scanned);
  }

  grpc::Status Import(grpc::ServerContext* context, grpc::ServerReader<v1::ProfileRecord>* reader,
                      v1::ProfileImportResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Profile/Import");
    if (!permit.ok()) return ToGrpc(permit.status());
    const auto place = streams_->Take(permit->principal().OwnerName(), [context] { context->TryCancel(); });
    if (!place.ok()) return ToGrpc(place.status());
    constexpr size_t kBatch = 1000;  // rows in a transaction
    ImportBatch batch;
    for (v1::ProfileRecord record; reader->Read(&record);) {
      (*place)->Progress();
      if (const absl::Status added = Add(record, &batch); !added.ok()) return ToGrpc(added);
      if (batch.size() < kBatch) continue;
      if (const absl::Status taken = Take(&batch, response); !taken.ok()) return ToGrpc(taken);
    }
    if (const absl::Status taken = Take(&batch, response); !taken.ok()) return ToGrpc(taken);
    return ToGrpc(farm_->KnowImports(batch.believed, permit->principal().name));
  }

 private:
  // Rows of other servers that are stored together.
  struct ImportBatch {
    std::vector<MeasurementRow> measurements;
    std::vector<PlanComparisonRow> comparisons;
    std::vector<PlanRow> plans;
    std::set<std::string> believed = {};  // sources, of all batches
    size_t size() const { return measurements.size() + comparisons.size() + plans.size(); }
  };

  // Adds the record's row, unless its server does not believe it. A device is stored at once.
  absl::Status Add(const v1::ProfileRecord& record, ImportBatch* batch) {
    constexpr char kQuarantined[] = "quarantined";
    switch (record.record_case()) {
      case v1::ProfileRecord::kDevice:
        return TakeDevice(record.device());
      case v1::ProfileRecord::kComparison: {
        if (record.comparison().standing() == kQuarantined) return absl::OkStatus();
        ASSIGN_OR_RETURN(batch->comparisons.emplace_back(), ImportedRow(record.comparison()));
        if (record.believed()) batch->believed.insert(batch->comparisons.back().source);
        return absl::OkStatus();
      }
      case v1::ProfileRecord::kPlan: {
        if (record.plan().quarantined()) return absl::OkStatus();
        ASSIGN_OR_RETURN(batch->plans.emplace_back(), ImportedRow(record.plan()));
        return absl::OkStatus();
      }
      default: {  // a record of a newer server is no measurement
        if (record.measurement().standing() == kQuarantined) return absl::OkStatus();
        ASSIGN_OR_RETURN(batch->measurements.emplace_back(), ImportedRow(record.measurement()));
        if (record.believed()) batch->believed.insert(batch->measurements.back().source);
        return absl::OkStatus();
      }
    }
  }

  absl::Status Take(ImportBatch* batch, v1::ProfileImportResponse* response) {
    ASSIGN_OR_RETURN(const int64_t added, store_->MergeMeasurements(batch->measurements));
    response->set_added(response->added() + added);
    response->set_known(response->known() + static_cast<int64_t>(batch->measurements.size()) - added);
    ASSIGN_OR_RETURN(const int64_t plans, store_->MergePlans(batch->comparisons, batch->plans));
    const auto sent = static_cast<int64_t>(batch->comparisons.size() + batch->plans.size());
    response->set_plans_added(response->plans_added() + plans);
    response->set_plans_known(response->plans_known() + sent - plans);
    *batch = {{}, {}, {}, std::move(batch->believed)};
    return farm_->KnowImports();
  }

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
  Farm* const farm_;
  StreamPlaces* const streams_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProfileService(Guard* guard, Store* store, JobRunner* jobs, Farm* farm,
                                                  StreamPlaces* streams) {
  return std::make_unique<ProfileService>(guard, store, jobs, farm, streams);
}

}  // namespace fusion
