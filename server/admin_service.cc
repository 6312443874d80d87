#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/admin.grpc.pb.h"
#include "server/auth/guard.h"
#include "server/grpc_status.h"
#include "server/retention/retention.h"
#include "server/services.h"

namespace fusion {
namespace {

constexpr int64_t kMostFindings = 1000;  // of one answer: a receiver accepts at most 4 MiB

// Sends progress some hundred times, but for the end, which the last message tells, and stops when the caller has gone.
template <typename Message>
Retention::Progress Reporter(grpc::ServerContext* context, grpc::ServerWriter<Message>* writer) {
  return [context, writer](int64_t done, int64_t total) {
    if (done < total && done % std::max<int64_t>(total / 100, 1) == 0) {
      Message message;
      message.set_done(done);
      message.set_total(total);
      writer->Write(message);
    }
    return !context->IsCancelled();
  };
}

class AdminService : public v1::Admin::Service {
 public:
  AdminService(Guard* guard, Retention* retention) : guard_(guard), retention_(retention) {}

  grpc::Status Collect(grpc::ServerContext* context, const v1::CollectRequest* request,
                       v1::CollectResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Admin/Collect");
    if (!permit.ok()) return ToGrpc(permit.status());
    if (request->keep_ms() < 0 || request->grace_ms() < 0) {
      return ToGrpc(absl::InvalidArgumentError("an age is negative"));
    }
    RetentionOptions options = retention_->options();
    if (request->has_keep_ms()) {
      options.keep = absl::Milliseconds(request->keep_ms());
      options.keep_tasks = std::min(options.keep_tasks, options.keep);
    }
    if (request->has_grace_ms()) options.grace = absl::Milliseconds(request->grace_ms());
    const absl::StatusOr<Retention::Collected> collected = retention_->Collect(options);
    if (!collected.ok()) return ToGrpc(collected.status());
    response->set_jobs(collected->rows.jobs);
    response->set_results(collected->rows.results);
    response->set_tasks(collected->rows.tasks);
    response->set_builds(collected->rows.builds);
    response->set_blobs(collected->blobs.blobs);
    response->set_bytes(collected->blobs.bytes);
    response->set_strays(collected->blobs.strays);
    return grpc::Status::OK;
  }

  grpc::Status Check(grpc::ServerContext* context, const v1::CheckRequest* request,
                     grpc::ServerWriter<v1::CheckProgress>* writer) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Admin/Check");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<Retention::Checked> checked = retention_->Check(request->repair(), Reporter(context, writer));
    if (!checked.ok()) return ToGrpc(checked.status());
    v1::CheckProgress last;
    last.set_done(checked->blobs);
    last.set_total(checked->blobs);
    last.mutable_result()->set_blobs(checked->blobs);
    last.mutable_result()->set_bytes(checked->bytes);
    for (const Retention::Finding& finding : checked->findings) {
      v1::CheckFinding* proto = last.mutable_result()->add_findings();
      if (last.result().findings_size() == kMostFindings) {
        proto->set_what("there are more findings; the server's log has all");
        break;
      }
      proto->set_what(finding.what);
      proto->set_mended(finding.mended);
    }
    writer->Write(last);
    return grpc::Status::OK;
  }

  grpc::Status BackUp(grpc::ServerContext* context, const v1::BackUpRequest* request,
                      grpc::ServerWriter<v1::BackUpProgress>* writer) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Admin/BackUp");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<Retention::BackedUp> copied = retention_->BackUp(request->folder(), Reporter(context, writer));
    if (!copied.ok()) return ToGrpc(copied.status());
    v1::BackUpProgress last;
    last.set_done(copied->blobs);
    last.set_total(copied->blobs);
    last.mutable_result()->set_blobs(copied->blobs);
    last.mutable_result()->set_bytes(copied->bytes);
    writer->Write(last);
    return grpc::Status::OK;
  }

  grpc::Status PruneProfile(grpc::ServerContext* context, const v1::PruneProfileRequest* request,
                            v1::PruneProfileResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Admin/PruneProfile");
    if (!permit.ok()) return ToGrpc(permit.status());
    if (request->older_than_ms() <= 0) {
      return ToGrpc(absl::InvalidArgumentError("say how old the measurements are that go: older_than_ms is not set"));
    }
    const absl::StatusOr<int64_t> removed =
        retention_->Prune({absl::ToUnixMillis(absl::Now()) - request->older_than_ms(), request->device_fingerprint()});
    if (!removed.ok()) return ToGrpc(removed.status());
    response->set_measurements(*removed);
    return grpc::Status::OK;
  }

 private:
  Guard* const guard_;
  Retention* const retention_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(Guard* guard, Retention* retention) {
  return std::make_unique<AdminService>(guard, retention);
}

}  // namespace fusion
