#include "absl/strings/str_cat.h"
#include "proto/blob.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "server/artifacts/artifact_store.h"
#include "server/artifacts/upload_batch.h"
#include "server/auth/guard.h"
#include "server/byte_budget.h"
#include "server/grpc_status.h"
#include "server/metrics/metrics.h"
#include "server/services.h"
#include "server/stream_places.h"

namespace fusion {
namespace {

constexpr int64_t kMaxBlobBytes = 64 << 20;
constexpr int kMaxDigestsPerCall = 4096;
constexpr int64_t kPieceBytes = 1 << 20;

// As for a digest that nobody has.
absl::Status NoBlob(const std::string& digest) { return absl::NotFoundError(absl::StrCat("no blob ", digest)); }

class BlobService : public v1::Blobs::Service {
 public:
  BlobService(Guard* guard, ArtifactStore* artifacts, Metrics* metrics, StreamPlaces* streams, ByteBudget* budget,
              std::function<absl::Status()> room)
      : guard_(guard),
        artifacts_(artifacts),
        metrics_(metrics),
        streams_(streams),
        budget_(budget),
        room_(std::move(room)) {}

  grpc::Status FindMissing(grpc::ServerContext* context, const v1::FindMissingRequest* request,
                           v1::FindMissingResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Blobs/FindMissing");
    if (!permit.ok()) return ToGrpc(permit.status());
    if (request->digests_size() > kMaxDigestsPerCall) {
      return ToGrpc(absl::InvalidArgumentError(
          absl::StrCat(request->digests_size(), " digests; at most ", kMaxDigestsPerCall, " a call")));
    }
    for (const std::string& digest : request->digests()) {
      if (!IsDigest(digest)) {
        return ToGrpc(absl::InvalidArgumentError("a digest is not 64 lower-case hex digits"));
      }
    }
    absl::StatusOr<std::vector<std::string>> missing = artifacts_->Missing(
        std::vector<std::string>(request->digests().begin(), request->digests().end()), permit->principal().tenant);
    if (!missing.ok()) return ToGrpc(missing.status());
    for (std::string& digest : *missing) response->add_missing(std::move(digest));
    return grpc::Status::OK;
  }

  grpc::Status Write(grpc::ServerContext* context, grpc::ServerReader<v1::WriteRequest>* reader,
                     v1::WriteResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Blobs/Write");
    if (!permit.ok()) return ToGrpc(permit.status());
    const auto place = streams_->Take(permit->principal().OwnerName(), [context] { context->TryCancel(); });
    if (!place.ok()) return ToGrpc(place.status());
    if (const absl::Status room = room_(); !room.ok()) return ToGrpc(room);
    Incoming incoming;
    UploadBatch batch(
        artifacts_,
        permit->principal().tenant);  // installs complete blobs in any case: an interrupted client sends less later
    v1::WriteRequest message;
    while (reader->Read(&message)) {
      (*place)->Progress();
      absl::Status status = Take(permit->principal(), message, &incoming, &batch, response);
      if (!status.ok()) return ToGrpc(status);
    }
    const absl::Status installed = batch.Finish();
    if (incoming.open) return ToGrpc(absl::InvalidArgumentError("the stream ended inside a blob"));
    return ToGrpc(installed);
  }

  grpc::Status Read(grpc::ServerContext* context, const v1::ReadRequest* request,
                    grpc::ServerWriter<v1::ReadResponse>* writer) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Blobs/Read");
    if (!permit.ok()) return ToGrpc(permit.status());
    if (!IsDigest(request->digest())) {
      return ToGrpc(absl::InvalidArgumentError("a digest is not 64 lower-case hex digits"));
    }
    if (const absl::Status may = CheckMayRead(permit->principal(), request->digest()); !may.ok()) return ToGrpc(may);
    const auto place = streams_->Take(permit->principal().OwnerName(), [context] { context->TryCancel(); });
    if (!place.ok()) return ToGrpc(place.status());
    v1::ReadResponse response;
    return ToGrpc(artifacts_->Stream(request->digest(), request->offset(), kPieceBytes, [&](absl::string_view piece) {
      response.set_data(piece.data(), piece.size());
      if (!writer->Write(response)) return absl::CancelledError("the reader hung up");
      (*place)->Progress();
      return absl::OkStatus();
    }));
  }

 private:
  // A client reads what its tenant has. Workers read whatever their tasks name, of all tenants; an untrusted builder
  // only payloads of tasks that are not done, so that it cannot try out what others have.
  absl::Status CheckMayRead(const Principal& caller, const std::string& digest) {
    if (caller.roles.HasAnyOf({Role::kBuild, Role::kMeasure})) return absl::OkStatus();
    if (caller.roles.Has(Role::kUntrustedBuild) && artifacts_->payloads().Find(digest).has_value()) {
      return absl::OkStatus();
    }
    if (!caller.roles.Has(Role::kClient)) return NoBlob(digest);
    ASSIGN_OR_RETURN(const std::vector<std::string> missing, artifacts_->Missing({digest}, caller.tenant));
    return missing.empty() ? absl::OkStatus() : NoBlob(digest);
  }

  struct Incoming {
    bool open = false;
    std::string digest;
    int64_t declared_bytes = 0, received_bytes = 0;
    std::unique_ptr<ArtifactStore::Upload> upload;  // null: the tenant has the blob, so its bytes are skipped
  };

  absl::Status Take(const Principal& caller, const v1::WriteRequest& message, Incoming* incoming, UploadBatch* batch,
                    v1::WriteResponse* response) {
    if (!incoming->open) {
      if (!IsDigest(message.digest())) {
        return absl::InvalidArgumentError("the first message of a blob needs its digest, 64 lower-case hex digits");
      }
      if (message.size_bytes() < 0 || message.size_bytes() > kMaxBlobBytes) {
        return absl::InvalidArgumentError(absl::StrCat("blob ", message.digest(), ": ", message.size_bytes(),
                                                       " bytes; at most ", kMaxBlobBytes, " are taken"));
      }
      *incoming = Incoming{true, message.digest(), message.size_bytes(), 0, nullptr};
      // A blob of another tenant alone is not there: whoever knows a digest alone would else get the bytes.
      ASSIGN_OR_RETURN(const std::vector<std::string> missing, artifacts_->Missing({message.digest()}, caller.tenant));
      if (!missing.empty()) {
        RETURN_IF_ERROR(budget_->Take(caller.OwnerName(), message.size_bytes()));
        ASSIGN_OR_RETURN(incoming->upload, artifacts_->Begin());
      }
    } else if (!message.digest().empty() && message.digest() != incoming->digest) {
      return absl::InvalidArgumentError(absl::StrCat("blob ", incoming->digest, " was not finished"));
    }
    incoming->received_bytes += static_cast<int64_t>(message.data().size());
    if (incoming->received_bytes > incoming->declared_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("blob ", incoming->digest, ": more than the declared ", incoming->declared_bytes, " bytes"));
    }
    if (incoming->upload != nullptr) RETURN_IF_ERROR(incoming->upload->Append(message.data()));
    metrics_->Count(Metric::kUploadBytes, {}, static_cast<double>(message.data().size()));
    if (!message.finish()) return absl::OkStatus();
    if (incoming->received_bytes != incoming->declared_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("blob ", incoming->digest, ": ", incoming->received_bytes,
                                                     " bytes of the declared ", incoming->declared_bytes));
    }
    if (incoming->upload != nullptr) {
      RETURN_IF_ERROR(incoming->upload->Seal(incoming->digest));
      RETURN_IF_ERROR(batch->Add(std::move(incoming->upload)));
    }
    response->set_blobs(response->blobs() + 1);
    response->set_bytes(response->bytes() + incoming->declared_bytes);
    *incoming = Incoming{};
    return absl::OkStatus();
  }

  Guard* const guard_;
  ArtifactStore* const artifacts_;
  Metrics* const metrics_;
  StreamPlaces* const streams_;
  ByteBudget* const budget_;
  const std::function<absl::Status()> room_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeBlobService(Guard* guard, ArtifactStore* artifacts, Metrics* metrics,
                                               StreamPlaces* streams, ByteBudget* budget,
                                               std::function<absl::Status()> room) {
  return std::make_unique<BlobService>(guard, artifacts, metrics, streams, budget, std::move(room));
}

}  // namespace fusion
