#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/auth.grpc.pb.h"
#include "proto/blob.grpc.pb.h"
#include "proto/channel/channel.h"
#include "proto/worker.grpc.pb.h"
#include "worker/lease/transport.h"
#include "worker/lease/worker_channel.h"

namespace fusion {
namespace {

constexpr size_t kMessageBytes = 1 << 20;  // proto/blob.proto
constexpr absl::Duration kRenewalTimeout = absl::Seconds(10);

void SetDeadline(grpc::ClientContext* context, absl::Duration timeout) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

class GrpcTransport : public Transport {
 public:
  GrpcTransport(const Endpoint& server, std::unique_ptr<CertificateRenewal> renewal)
      : server_(server), renewal_(std::move(renewal)), stubs_(Connect()) {}

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration timeout) override {
    RenewIfDue();
    const std::shared_ptr<const Stubs> stubs = Connected();
    grpc::ClientContext context;
    SetDeadline(&context, timeout);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (interrupted_) return absl::CancelledError("interrupted");
      in_flight_ = &context;
    }
    v1::SynchronizeResponse response;
    const grpc::Status status = stubs->worker->Synchronize(&context, request, &response);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      in_flight_ = nullptr;
    }
    if (!status.ok()) return ToAbsl(status);
    return response;
  }

  void Interrupt() override {
    std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
    if (in_flight_ != nullptr) in_flight_->TryCancel();
  }

  void Resume() override {
    std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = false;
  }

  absl::StatusOr<std::string> ReadBlob(const std::string& digest, int64_t size_bytes) override {
    grpc::ClientContext context;
    SetDeadline(&context, absl::Minutes(5));
    v1::ReadRequest request;
    request.set_digest(digest);
    const std::shared_ptr<const Stubs> stubs = Connected();
    auto reader = stubs->blobs->Read(&context, request);
    std::string bytes;
    for (v1::ReadResponse response; reader->Read(&response);) {
      bytes += response.data();
      if (static_cast<int64_t>(bytes.size()) > size_bytes) {
        context.TryCancel();
        reader->Finish();
        return absl::DataLossError(absl::StrCat("blob ", digest, " is longer than its ", size_bytes, " bytes"));
      }
    }
    const grpc::Status status = reader->Finish();
    if (!status.ok()) return ToAbsl(status);
    return bytes;
  }

  absl::Status WriteBlob(const std::string& digest, const std::string& bytes) override {
    grpc::ClientContext context;
    SetDeadline(&context, absl::Minutes(5));
    v1::WriteResponse response;
    const std::shared_ptr<const Stubs> stubs = Connected();
    auto writer = stubs->blobs->Write(&context, &response);
    size_t offset = 0;
    do {
      v1::WriteRequest request;
      if (offset == 0) {
        request.set_digest(digest);
        request.set_size_bytes(static_cast<int64_t>(bytes.size()));
      }
      request.set_data(bytes.substr(offset, kMessageBytes));
      offset += request.data().size();
      request.set_finish(offset == bytes.size());
      if (!writer->Write(request)) break;
    } while (offset < bytes.size());
    writer->WritesDone();
    return ToAbsl(writer->Finish());
  }

 private:
  // The stubs of one connection, shared by the calls that use it: a new certificate needs a new one, while they go on.
  struct Stubs {
    std::unique_ptr<v1::Worker::Stub> worker;
    std::unique_ptr<v1::Blobs::Stub> blobs;
    std::unique_ptr<v1::Auth::Stub> auth;
  };

  std::shared_ptr<const Stubs> Connect() const {
    grpc::ChannelArguments arguments = WorkerChannelArguments();
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // else a new channel takes an old connection
    const auto channel = MakeChannel(server_, arguments);
    return std::make_shared<const Stubs>(
        Stubs{v1::Worker::NewStub(channel), v1::Blobs::NewStub(channel), v1::Auth::NewStub(channel)});
  }
  std::shared_ptr<const Stubs> Connected() {
    std::lock_guard<std::mutex> lock(mutex_);
    return stubs_;
  }
  void RenewIfDue() {
    if (renewal_ == nullptr) return;
    const bool renewed = renewal_->RenewIfDue([this]() -> absl::StatusOr<std::string> {
      grpc::ClientContext context;
      SetDeadline(&context, kRenewalTimeout);
      v1::CreateTokenResponse response;
      const grpc::Status status = Connected()->auth->RenewCertificate(&context, {}, &response);
      if (!status.ok()) return ToAbsl(status);
      return response.certificate();
    });
    if (!renewed) return;
    std::shared_ptr<const Stubs> stubs = Connect();
    std::lock_guard<std::mutex> lock(mutex_);
    stubs_ = std::move(stubs);
  }
  absl::Status ToAbsl(const grpc::Status& status) const { return CallError(server_, status); }

  const Endpoint server_;
  const std::unique_ptr<CertificateRenewal> renewal_;  // null: nothing ends; used by the thread of Synchronize
  std::mutex mutex_;
  std::shared_ptr<const Stubs> stubs_;        // guarded by mutex_
  bool interrupted_ = false;                  // guarded by mutex_
  grpc::ClientContext* in_flight_ = nullptr;  // guarded by mutex_
};

}  // namespace

grpc::ChannelArguments WorkerChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // the time that a handshake may take
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 3000);
  // Together less than an idle call is held.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  return arguments;
}

std::unique_ptr<Transport> MakeGrpcTransport(const Endpoint& server, std::unique_ptr<CertificateRenewal> renewal) {
  return std::make_unique<GrpcTransport>(server, std::move(renewal));
}

}  // namespace fusion
