#include "client/api/connection.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/admin.grpc.pb.h"
#include "proto/auth.grpc.pb.h"
#include "proto/blob.grpc.pb.h"
#include "proto/channel/channel.h"
#include "proto/compile.grpc.pb.h"
#include "proto/profile.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "runtime/base/steady_clock.h"

namespace fusion {
namespace {

constexpr size_t kMessageBytes = 1 << 20;  // the largest that proto/blob.proto allows
constexpr absl::Duration kCallTimeout = absl::Seconds(60);
constexpr absl::Duration kTransferTimeout = absl::Hours(2);

class GrpcConnection : public Connection {
 public:
  explicit GrpcConnection(const Endpoint& endpoint) : endpoint_(endpoint) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // the time that a handshake may take
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 60000);
    const auto channel = MakeChannel(endpoint, arguments);
    any_ = std::make_unique<grpc::GenericStub>(channel);
    compile_ = v1::Compile::NewStub(channel);
    auth_ = v1::Auth::NewStub(channel);
    signatures_ = v1::Signatures::NewStub(channel);
    blobs_ = v1::Blobs::NewStub(channel);
    workers_ = v1::WorkerAdmin::NewStub(channel);
    admin_ = v1::Admin::NewStub(channel);
    profile_ = v1::Profile::NewStub(channel);
  }

  const std::string& address() const override { return endpoint_.address; }

  absl::StatusOr<v1::Capabilities> GetCapabilities(absl::Duration timeout) override {
    return Call<v1::Capabilities>(timeout, [&](auto* context, auto* response) {
      return compile_->GetCapabilities(context, v1::GetCapabilitiesRequest(), response);
    });
  }
  // grpc.health.v1, which needs no messages of its own: the request is empty, and the answer is one small number.
  absl::StatusOr<bool> IsServing() override {
    constexpr char kServing[] = {8, 1};  // field 1 of the answer is SERVING
    grpc::ClientContext context;
    SetDeadline(&context, kCallTimeout);
    const grpc::Slice none("", 0);
    grpc::CompletionQueue queue;
    const auto call =
        any_->PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&none, 1), &queue);
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (!status.ok()) return ToAbsl(status);
    grpc::Slice bytes;
    if (!answer.DumpToSingleSlice(&bytes).ok()) return absl::InternalError("the answer about health cannot be read");
    return absl::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()) ==
           absl::string_view(kServing, sizeof kServing);
  }
  absl::StatusOr<v1::SubmitResponse> Submit(const v1::SubmitRequest& request) override {
    return Call<v1::SubmitResponse>(
        kCallTimeout, [&](auto* context, auto* response) { return compile_->Submit(context, request, response); });
  }
  absl::StatusOr<v1::PlanResponse> Plan(const v1::SubmitRequest& request) override {
    return Call<v1::PlanResponse>(
        absl::Minutes(30), [&](auto* context, auto* response) { return compile_->Plan(context, request, response); });
  }
  absl::Status Watch(const std::string& job_id, int64_t resume_seq,
                     const std::function<bool(const v1::JobEvent&)>& event) override {
    grpc::ClientContext context;
    v1::WatchRequest request;
    request.set_job_id(job_id);
    request.set_resume_seq(resume_seq);
    auto reader = compile_->Watch(&context, request);
    for (v1::JobEvent next; reader->Read(&next);) {
      if (event(next)) continue;
      context.TryCancel();
      reader->Finish();
      return absl::OkStatus();
    }
    return ToAbsl(reader->Finish());
  }
  absl::StatusOr<v1::Job> GetJob(const std::string& job_id) override {
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    return Call<v1::Job>(kCallTimeout,
                         [&](auto* context, auto* response) { return compile_->Get(context, request, response); });
  }
  absl::StatusOr<v1::ListJobsResponse> ListJobs(int limit) override {
    return AllPages<v1::ListJobsResponse>(
        v1::ListJobsRequest(), limit, 200, [](auto& page) { return page.mutable_jobs(); },
        [&](auto* context, const auto& request, auto* response) { return compile_->List(context, request, response); });
  }
  absl::StatusOr<v1::JobLogsResponse> JobLogs(const v1::JobLogsRequest& request) override {
    return Call<v1::JobLogsResponse>(
        kCallTimeout, [&](auto* context, auto* response) { return compile_->Logs(context, request, response); });
  }
  absl::StatusOr<v1::Job> CancelJob(const std::string& job_id) override {
    v1::CancelJobRequest request;
    request.set_job_id(job_id);
    return Call<v1::Job>(kCallTimeout,
                         [&](auto* context, auto* response) { return compile_->Cancel(context, request, response); });
  }

  absl::StatusOr<v1::Job> PinJob(const std::string& job_id, bool pinned) override {
    v1::PinJobRequest request;
    request.set_job_id(job_id);
    request.set_pinned(pinned);
    return Call<v1::Job>(kCallTimeout,
                         [&](auto* context, auto* response) { return compile_->Pin(context, request, response); });
  }

  absl::StatusOr<std::string> Sign(const std::string& job_id, bool early) override {
    v1::SignRequest request;
    request.set_job_id(job_id);
    request.set_early(early);
    const auto signed_it = Call<v1::SignResponse>(
        kCallTimeout, [&](auto* context, auto* response) { return signatures_->Sign(context, request, response); });
    // A server from before signatures has none.
    if (absl::IsUnimplemented(signed_it.status())) return std::string();
    if (!signed_it.ok()) return signed_it.status();
    return signed_it->signatures();
  }

  absl::StatusOr<std::vector<std::string>> FindMissing(const std::vector<std::string>& digests) override {
    constexpr size_t kMost = 4096;  // the most that proto/blob.proto allows
    std::vector<std::string> missing;
    for (size_t begin = 0; begin < digests.size(); begin += kMost) {
      v1::FindMissingRequest request;
      for (size_t i = begin; i < std::min(digests.size(), begin + kMost); ++i) request.add_digests(digests[i]);
      auto response = Call<v1::FindMissingResponse>(
          kCallTimeout, [&](auto* context, auto* answer) { return blobs_->FindMissing(context, request, answer); });
      if (!response.ok()) return response.status();
      missing.insert(missing.end(), response->missing().begin(), response->missing().end());
    }
    return missing;
  }

  absl::Status WriteBlobs(const std::vector<BlobSource>& blobs,
                          const std::function<void(int64_t bytes)>& sent) override {
    grpc::ClientContext context;
    SetDeadline(&context, kTransferTimeout);
    v1::WriteResponse response;
    auto writer = blobs_->Write(&context, &response);
    bool open = true;
    for (const BlobSource& blob : blobs) {
      size_t offset = 0;
      do {
        v1::WriteRequest request;
        if (offset == 0) {
          request.set_digest(blob.digest);
          request.set_size_bytes(static_cast<int64_t>(blob.bytes.size()));
        }
        const absl::string_view piece = blob.bytes.substr(offset, kMessageBytes);
        request.set_data(piece.data(), piece.size());
        offset += piece.size();
        request.set_finish(offset == blob.bytes.size());
        open = writer->Write(request);
        if (open && sent) sent(static_cast<int64_t>(piece.size()));
      } while (open && offset < blob.bytes.size());
      if (!open) break;
    }
    if (open) writer->WritesDone();
    return ToAbsl(writer->Finish());
  }

  absl::Status ReadBlob(const std::string& digest, int64_t offset,
                        const std::function<absl::Status(absl::string_view)>& bytes) override {
    grpc::ClientContext context;
    SetDeadline(&context, kTransferTimeout);
    v1::ReadRequest request;
    request.set_digest(digest);
    request.set_offset(offset);
    auto reader = blobs_->Read(&context, request);
    for (v1::ReadResponse response; reader->Read(&response);) {
      absl::Status taken = bytes(response.data());
      if (taken.ok()) continue;
      context.TryCancel();
      reader->Finish();
      return taken;
    }
    return ToAbsl(reader->Finish());
  }

  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest& request) override {
    return Call<v1::CreateTokenResponse>(
        kCallTimeout, [&](auto* context, auto* response) { return auth_->CreateToken(context, request, response); });
  }
  absl::StatusOr<v1::TokenInfo> RevokeToken(const std::string& id, bool with_joined) override {
    v1::RevokeTokenRequest request;
    request.set_id(id);
    request.set_with_joined(with_joined);
    return Call<v1::TokenInfo>(
        kCallTimeout, [&](auto* context, auto* response) { return auth_->RevokeToken(context, request, response); });
  }
  absl::StatusOr<v1::ListTokensResponse> ListTokens(int limit) override {
    return AllPages<v1::ListTokensResponse>(
        v1::ListTokensRequest(), limit, 1000, [](auto& page) { return page.mutable_tokens(); },
        [&](auto* context, const auto& request, auto* response) {
          return auth_->ListTokens(context, request, response);
        });
  }

  absl::StatusOr<v1::ListWorkersResponse> ListWorkers(int limit) override {
    return AllPages<v1::ListWorkersResponse>(
        v1::ListWorkersRequest(), limit, 1000, [](auto& page) { return page.mutable_workers(); },
        [&](auto* context, const auto& request, auto* response) {
          return workers_->ListWorkers(context, request, response);
        });
  }
  absl::StatusOr<v1::DrainedWorker> DrainWorker(const v1::DrainWorkerRequest& request) override {
    return Call<v1::DrainedWorker>(
        kCallTimeout, [&](auto* context, auto* response) { return workers_->DrainWorker(context, request, response); });
  }
  absl::StatusOr<v1::DrainedWorker> QuarantineWorker(const v1::QuarantineWorkerRequest& request) override {
    return Call<v1::DrainedWorker>(kCallTimeout, [&](auto* context, auto* response) {
      return workers_->QuarantineWorker(context, request, response);
    });
  }
  absl::StatusOr<v1::DrainedWorker> ReleaseWorker(const v1::ReleaseWorkerRequest& request) override {
    return Call<v1::DrainedWorker>(kCallTimeout, [&](auto* context, auto* response) {
      return workers_->ReleaseWorker(context, request, response);
    });
  }
  absl::StatusOr<v1::ProfileStats> ProfileStats() override {
    return Call<v1::ProfileStats>(kCallTimeout, [&](auto* context, auto* response) {
      return profile_->Stats(context, v1::ProfileStatsRequest(), response);
    });
  }
  absl::StatusOr<v1::ProfileQueryResponse> ProfileQuery(const v1::ProfileQueryRequest& request) override {
    return AllPages<v1::ProfileQueryResponse>(
        request, request.limit() > 0 ? request.limit() : 100, 2000,
        [](auto& page) { return page.mutable_measurements(); },
        [&](auto* context, const auto& page, auto* response) { return profile_->Query(context, page, response); });
  }
  absl::StatusOr<v1::ProfileImportResponse> ProfileImport(const std::vector<v1::ProfileRecord>& records) override {
    grpc::ClientContext context;
    SetDeadline(&context, kTransferTimeout);
    v1::ProfileImportResponse response;
    auto writer = profile_->Import(&context, &response);
    bool open = true;
    for (const v1::ProfileRecord& record : records) open = open && (!record.has_device() || writer->Write(record));
    // Measurements go in reverse, because the database appends: the oldest first.
    for (auto it = records.rbegin(); open && it != records.rend(); ++it) {
      open = it->has_device() || writer->Write(*it);
    }
    if (open) writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return ToAbsl(status);
    return response;
  }
  absl::Status ProfileExport(const v1::ProfileExportRequest& request,
                             const std::function<absl::Status(const v1::ProfileRecord&)>& record) override {
    grpc::ClientContext context;
    SetDeadline(&context, kTransferTimeout);
    auto reader = profile_->Export(&context, request);
    for (v1::ProfileRecord next; reader->Read(&next);) {
      absl::Status taken = record(next);
      if (taken.ok()) continue;
      context.TryCancel();
      reader->Finish();
      return taken;
    }
    return ToAbsl(reader->Finish());
  }
  absl::StatusOr<v1::PruneProfileResponse> PruneProfile(const v1::PruneProfileRequest& request) override {
    return Call<v1::PruneProfileResponse>(kTransferTimeout, [&](auto* context, auto* response) {
      return admin_->PruneProfile(context, request, response);
    });
  }

  absl::StatusOr<v1::CollectResponse> Collect(const v1::CollectRequest& request) override {
    return Call<v1::CollectResponse>(
        kTransferTimeout, [&](auto* context, auto* response) { return admin_->Collect(context, request, response); });
  }
  absl::StatusOr<v1::CheckResult> Check(bool repair, const FileProgress& progress) override {
    v1::CheckRequest request;
    request.set_repair(repair);
    return ReadToResult<v1::CheckProgress, v1::CheckResult>(
        progress, [&](grpc::ClientContext* context) { return admin_->Check(context, request); });
  }
  absl::StatusOr<v1::BackUpResult> BackUp(const std::string& folder, const FileProgress& progress) override {
    v1::BackUpRequest request;
    request.set_folder(folder);
    return ReadToResult<v1::BackUpProgress, v1::BackUpResult>(
        progress, [&](grpc::ClientContext* context) { return admin_->BackUp(context, request); });
  }

 private:
  // Reads a stream of progress, the last message of which has the result.
  template <typename Message, typename Result, typename Function>
  absl::StatusOr<Result> ReadToResult(const FileProgress& progress, Function function) {
    grpc::ClientContext context;
    SetDeadline(&context, kTransferTimeout);
    auto reader = function(&context);
    Message message;
    while (reader->Read(&message)) progress(message.done(), message.total());
    const grpc::Status status = reader->Finish();
    if (!status.ok()) return ToAbsl(status);
    if (!message.has_result()) return absl::InternalError("the server ended without a result");
    return std::move(*message.mutable_result());
  }

  static void SetDeadline(grpc::ClientContext* context, absl::Duration timeout) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }

  absl::Status ToAbsl(const grpc::Status& status) const { return CallError(endpoint_, status); }

  template <typename Response, typename Function>
  absl::StatusOr<Response> Call(absl::Duration timeout, Function function) {
    grpc::ClientContext context;
    SetDeadline(&context, timeout);
    Response response;
    const grpc::Status status = function(&context, &response);
    if (!status.ok()) return ToAbsl(status);
    return response;
  }

  // Asks for pages of at most `of_a_page` rows until there are `limit`, and returns them as one. A server from before
  // pages answers once, with what it has.
  template <typename Response, typename Request, typename RowsOf, typename Function>
  absl::StatusOr<Response> AllPages(Request request, int limit, int of_a_page, RowsOf rows_of, Function function) {
    Response all;
    while (true) {
      request.set_limit(std::min(limit - rows_of(all)->size(), of_a_page));
      absl::StatusOr<Response> page = Call<Response>(
          kCallTimeout, [&](auto* context, auto* response) { return function(context, request, response); });
      if (!page.ok()) return page.status();
      const std::string token = page->next_page_token();
      all.MergeFrom(*page);
      all.clear_next_page_token();
      if (token.empty() || rows_of(all)->size() >= limit) return all;
      request.set_page_token(token);
    }
  }

  const Endpoint endpoint_;
  std::unique_ptr<grpc::GenericStub> any_;
  std::unique_ptr<v1::Compile::Stub> compile_;
  std::unique_ptr<v1::Auth::Stub> auth_;
  std::unique_ptr<v1::Signatures::Stub> signatures_;
  std::unique_ptr<v1::Blobs::Stub> blobs_;
  std::unique_ptr<v1::WorkerAdmin::Stub> workers_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<v1::Profile::Stub> profile_;
};

}  // namespace

std::unique_ptr<Connection> Connection::Open(const Endpoint& endpoint) {
  return std::make_unique<GrpcConnection>(endpoint);
}

bool IsFinal(v1::JobState state) { return state == v1::SUCCEEDED || state == v1::FAILED || state == v1::CANCELLED; }

absl::Status WatchToEnd(Connection& connection, const std::string& job_id, int64_t resume_seq, absl::Duration patience,
                        const std::function<bool(const v1::JobEvent&)>& event,
                        const std::function<void(const std::string&)>& lost) {
  constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
  absl::Time away_since = absl::InfiniteFuture();
  absl::Duration pause = kFirstPause;
  bool ended = false;
  for (;;) {
    absl::Status status = connection.Watch(job_id, resume_seq, [&](const v1::JobEvent& next) {
      away_since = absl::InfiniteFuture();
      pause = kFirstPause;
      resume_seq = std::max(resume_seq, next.seq());
      const bool go_on = event(next);
      ended = !go_on || IsFinal(next.state());
      return !ended;
    });
    if (ended) return absl::OkStatus();
    // A server that shuts down ends the stream in order, without a final event; the client then tries again.
    if (!status.ok() && !absl::IsUnavailable(status) && !absl::IsCancelled(status)) return status;
    if (away_since == absl::InfiniteFuture()) {
      away_since = SteadyNow();
      lost(status.ok() ? "the server ended the stream" : std::string(status.message()));
    }
    if (SteadyNow() - away_since > patience) {
      return absl::UnavailableError(absl::StrCat("the server has been away for ", absl::FormatDuration(patience),
                                                 "; watch the job again with `fusionctl job watch ", job_id, "`"));
    }
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Seconds(3));
  }
}

}  // namespace fusion
