#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/compile.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "server/artifacts/artifact_store.h"
#include "server/auth/guard.h"
#include "server/bundle_signer.h"
#include "server/grpc_status.h"
#include "server/jobs/visible_jobs.h"
#include "server/services.h"

namespace fusion {
namespace {

// Callers name a job, not a blob: they may upload blobs that look like bundles.
class SignatureService : public v1::Signatures::Service {
 public:
  SignatureService(Guard* guard, Store* store, ArtifactStore* artifacts, const BundleSigner* signer, Log log)
      : guard_(guard), store_(store), artifacts_(artifacts), signer_(signer), log_(std::move(log)) {}

  grpc::Status Sign(grpc::ServerContext* context, const v1::SignRequest* request, v1::SignResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Signatures/Sign");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<std::string> signatures = Sign(permit->principal(), *request);
    if (!signatures.ok()) return ToGrpc(signatures.status());
    response->set_signatures(*signatures);
    return grpc::Status::OK;
  }

 private:
  absl::StatusOr<std::string> Sign(const Principal& principal, const v1::SignRequest& request) const {
    ASSIGN_OR_RETURN(const JobRow job, FindVisibleJob(*store_, principal, request.job_id()));
    const std::string& digest = request.early() ? job.early_digest : job.bundle_digest;
    if (digest.empty() || (!request.early() && job.state != JobPhase::kSucceeded)) {
      return absl::NotFoundError(absl::StrCat("job ", request.job_id(), " has no such bundle"));
    }
    ASSIGN_OR_RETURN(const std::string path, artifacts_->FileOf(digest));
    absl::StatusOr<std::string> signatures = signer_->Sign(path);
    if (signatures.ok()) return signatures;
    log_({LogLevel::kError, "cannot sign", {{"job", job.runs_as}, {"error", signatures.status().ToString()}}});
    return absl::InternalError("the server cannot sign the bundle; its log says why");
  }

  Guard* const guard_;
  Store* const store_;
  ArtifactStore* const artifacts_;
  const BundleSigner* const signer_;
  const Log log_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSignatureService(Guard* guard, Store* store, ArtifactStore* artifacts,
                                                    const BundleSigner* signer, Log log) {
  return std::make_unique<SignatureService>(guard, store, artifacts, signer, std::move(log));
}

}  // namespace fusion
