#include <grpcpp/grpcpp.h>

#include <mutex>

#include "absl/strings/str_cat.h"
#include "proto/blob.grpc.pb.h"
#include "proto/channel/channel.h"
#include "proto/worker.grpc.pb.h"
#include "worker/lease/transport.h"
#include "worker/lease/worker_channel.h"

namespace fusion {
namespace {

constexpr size_t kMessageBytes = 1 << 20;  // proto/blob.proto

void SetDeadline(grpc::ClientContext* context, absl::Duration timeout) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

class GrpcTransport : public Transport {
 public:
  explicit GrpcTransport(const Endpoint& server) : server_(server) {
    auto channel = MakeChannel(server, WorkerChannelArguments());
    worker_ = v1::Worker::NewStub(channel);
    blobs_ = v1::Blobs::NewStub(channel);
  }

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration timeout) override {
    grpc::ClientContext context;
    SetDeadline(&context, timeout);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (interrupted_) return absl::CancelledError("interrupted");
      in_flight_ = &context;
    }
    v1::SynchronizeResponse response;
    const grpc::Status status = worker_->Synchronize(&context, request, &response);
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
    auto reader = blobs_->Read(&context, request);
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
    auto writer = blobs_->Write(&context, &response);
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
  absl::Status ToAbsl(const grpc::Status& status) const { return CallError(server_, status); }

  const Endpoint server_;
  std::unique_ptr<v1::Worker::Stub> worker_;
  std::unique_ptr<v1::Blobs::Stub> blobs_;
  std::mutex mutex_;
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

std::unique_ptr<Transport> MakeGrpcTransport(const Endpoint& server) { return std::make_unique<GrpcTransport>(server); }

}  // namespace fusion
