#include <limits>

#include "proto/profile.grpc.pb.h"
#include "server/grpc_status.h"
#include "server/jobs/job_runner.h"
#include "server/services.h"

namespace fusion {
namespace {

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
  return proto;
}

class ProfileService : public v1::Profile::Service {
 public:
  ProfileService(Store* store, JobRunner* jobs) : store_(store), jobs_(jobs) {}

  grpc::Status Stats(grpc::ServerContext*, const v1::ProfileStatsRequest*, v1::ProfileStats* response) override {
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
    return grpc::Status::OK;
  }

  grpc::Status Query(grpc::ServerContext*, const v1::ProfileQueryRequest* request,
                     v1::ProfileQueryResponse* response) override {
    // Bounded by bytes too: a receiver takes at most 4 MiB.
    constexpr size_t kMaxResponseBytes = 3 << 20;
    const int limit = request->limit() <= 0 ? 100 : std::min(request->limit(), 10000);
    size_t bytes = 0;
    return ToGrpc(
        store_->ScanMeasurements({request->key_prefix(), request->contains(), request->device_fingerprint(), limit},
                                 [&](const MeasurementRow& row) {
                                   if (bytes > kMaxResponseBytes) return;
                                   *response->add_measurements() = ToProto(row);
                                   bytes += response->measurements(response->measurements_size() - 1).ByteSizeLong();
                                 }));
  }

  grpc::Status Export(grpc::ServerContext*, const v1::ProfileExportRequest* request,
                      grpc::ServerWriter<v1::Measurement>* writer) override {
    bool open = true;
    return ToGrpc(
        store_->ScanMeasurements({"", "", request->device_fingerprint(), std::numeric_limits<int>::max()},
                                 [&](const MeasurementRow& row) { open = open && writer->Write(ToProto(row)); }));
  }

 private:
  Store* const store_;
  JobRunner* const jobs_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProfileService(Store* store, JobRunner* jobs) {
  return std::make_unique<ProfileService>(store, jobs);
}

}  // namespace fusion
