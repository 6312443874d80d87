#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/worker.grpc.pb.h"
#include "proto/worker_protocol.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/auth/guard.h"
#include "server/auth/tokens.h"
#include "server/disk_executor.h"
#include "server/grpc_status.h"
#include "server/jobs/job_logs.h"
#include "server/list_pages.h"
#include "server/scheduler/farm.h"
#include "server/services.h"

namespace fusion {
namespace {

constexpr size_t kMaxInlineBytes = 1 << 20;
constexpr int64_t kMaxResultBytes = 256 << 20;
constexpr size_t kMaxReasonBytes = 1 << 10;
constexpr int kMostLines = 256;  // of the log, in one call
constexpr size_t kMostFields = 16;
constexpr int kMostWorkers = 1000;  // of a page

absl::StatusOr<AttachedWorker> ParseInfo(const std::string& worker_id, const v1::WorkerInfo& info) {
  if (worker_id.empty() || worker_id.size() > 128) return absl::InvalidArgumentError("worker_id: 1 to 128 characters");
  if (info.protocol() < kOldestWorkerProtocol || info.protocol() > kWorkerProtocol) {
    return absl::FailedPreconditionError(absl::StrCat("worker speaks protocol ", info.protocol(), ", this server ",
                                                      kOldestWorkerProtocol, " to ", kWorkerProtocol,
                                                      "; update the older of the two"));
  }
  AttachedWorker worker;
  worker.id = worker_id;
  worker.name = info.name();
  worker.version = info.version();
  worker.protocol = info.protocol();
  worker.measure_kinds.insert(info.measure_kinds().begin(), info.measure_kinds().end());
  worker.labels.insert(info.labels().begin(), info.labels().end());
  if (worker.measure_kinds.empty()) {
    worker.device.kind.clear();
  } else {
    absl::StatusOr<DeviceModel> model = DeviceModelFromJson(info.device_model_json());
    if (!model.ok()) return Annotate(absl::InvalidArgumentError(model.status().message()), "device_model_json");
    worker.device = *std::move(model);
    worker.fingerprint = worker.device.Fingerprint();
  }
  for (const v1::ToolchainInfo& toolchain : info.toolchains()) {
    worker.toolchain_kinds.insert(toolchain.kind());
    // Workers of before this field say only the version.
    worker.toolchains[toolchain.kind()] = {
        toolchain.digest().empty() ? Sha256Hex(toolchain.version()) : toolchain.digest(), toolchain.reproduces()};
    absl::StrAppend(&worker.toolchain, worker.toolchain.empty() ? "" : ", ", toolchain.version());
  }
  return worker;
}

// One Synchronize call. It owns itself until OnDone.
class SyncCall : public grpc::ServerUnaryReactor {
 public:
  SyncCall(Permit permit, Farm* farm, std::string worker_id, bool on_socket)
      : permit_(std::move(permit)),
        farm_(farm),
        worker_id_(std::move(worker_id)),
        on_socket_(on_socket),
        gone_(std::make_shared<std::atomic<bool>>(false)) {}
  void OnCancel() override {
    *gone_ = true;
    farm_->HungUp(worker_id_, gone_);
  }
  void OnDone() override { delete this; }
  const std::shared_ptr<std::atomic<bool>>& gone() const { return gone_; }
  const Principal& principal() const { return permit_.principal(); }
  bool on_socket() const { return on_socket_; }

 private:
  const Permit permit_;
  Farm* const farm_;
  const std::string worker_id_;
  const bool on_socket_;
  const std::shared_ptr<std::atomic<bool>> gone_;
};

class RefusedSync : public grpc::ServerUnaryReactor {
 public:
  explicit RefusedSync(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// A worker takes tasks of the kinds only that its roles name.
absl::Status CheckOffer(const Principal& principal, const v1::WorkerInfo& info) {
  const auto refuse = [&](const char* what, Role role) {
    return absl::PermissionDeniedError(absl::StrCat("worker '", info.name(), "' ", what, ", and ", principal.name,
                                                    " has the roles ", NamesOf(principal.roles), " without ",
                                                    NameOf(role)));
  };
  if (info.toolchains_size() > 0 && !principal.roles.HasAnyOf({Role::kBuild, Role::kUntrustedBuild})) {
    return refuse("offers to build (--no-build leaves that out)", Role::kBuild);
  }
  if (info.measure_kinds_size() > 0 && !principal.roles.Has(Role::kMeasure)) {
    return refuse("offers to measure (--kinds none leaves that out)", Role::kMeasure);
  }
  return absl::OkStatus();
}

class WorkerService : public v1::Worker::CallbackService {
 public:
  WorkerService(Guard* guard, Farm* farm, ArtifactStore* artifacts, DiskExecutor* executor, JobLogs* logs)
      : guard_(guard), farm_(farm), artifacts_(artifacts), executor_(executor), logs_(logs) {}

  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* context, const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response) override {
    absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Worker/Synchronize");
    if (!permit.ok()) return new RefusedSync(permit.status());
    auto* call =
        new SyncCall(*std::move(permit), farm_, request->worker_id(), absl::StartsWith(context->peer(), "unix:"));
    executor_->Run([this, call, request, response] {
      absl::Status status = Handle(*request, response, call);
      if (!status.ok()) call->Finish(ToGrpc(status));
    });
    return call;
  }

 private:
  // `request` and `response` live until Finish.
  absl::Status Handle(const v1::SynchronizeRequest& request, v1::SynchronizeResponse* response, SyncCall* call) {
    RETURN_IF_ERROR(CheckOffer(call->principal(), request.info()));
    const std::string info = request.info().SerializeAsString();
    const Principal& principal = call->principal();
    if (!farm_->IsRegistered(request.worker_id(), info, principal.token_id)) {
      ASSIGN_OR_RETURN(AttachedWorker worker, ParseInfo(request.worker_id(), request.info()));
      worker.info = info;
      worker.token = principal.token_id;
      worker.on_socket = call->on_socket();
      // Whoever has no token is the server's user, or the server takes everybody's word (--insecure).
      worker.source = principal.token_id.empty() ? "" : principal.OwnerName();
      worker.trusted_builds = principal.roles.Has(Role::kBuild);
      RETURN_IF_ERROR(farm_->Register(std::move(worker)));
    }
    FarmPoll poll;
    poll.worker_id = request.worker_id();
    poll.draining = request.draining();
    poll.max_wait = absl::Milliseconds(request.max_wait_ms());
    if (request.has_current()) {
      poll.task_id = request.current().task_id();
      poll.fence = request.current().fence();
      poll.stage = request.current().stage() == v1::WAITING        ? TaskStage::kWaiting
                   : request.current().stage() == v1::RUNNING_TASK ? TaskStage::kRunning
                                                                   : TaskStage::kUnknown;
      poll.finished = request.current().has_result();
      if (poll.finished) poll.result = TakeResult(request.current().result());
    }
    KeepLines(request);
    poll.gone = call->gone();
    poll.reply = [response, call](const FarmAnswer& answer) {
      if (!answer.status.ok()) return call->Finish(ToGrpc(answer.status));
      response->set_next_sync_ms(absl::ToInt64Milliseconds(answer.next_sync));
      if (answer.task.has_value()) {
        const TaskRow& row = *answer.task;
        v1::Task* task = response->mutable_task();
        task->set_task_id(row.id);
        task->set_fence(row.fence);
        task->set_kind(row.kind == TaskType::kBuild ? v1::BUILD : v1::MEASURE);
        task->set_device_kind(row.device_kind);
        task->set_payload_digest(row.payload_digest);
        task->set_payload_size_bytes(row.payload_bytes);
        task->set_timeout_ms(row.timeout_ms);
        task->set_threads(row.threads);
        task->set_description(row.description);
        task->set_job_id(row.job);
        task->set_trace_id(row.trace);
      }
      call->Finish(grpc::Status::OK);
    };
    farm_->Poll(std::move(poll));
    return absl::OkStatus();
  }

  // The lines are about the job of the task that the worker holds, whatever they say themselves.
  void KeepLines(const v1::SynchronizeRequest& request) {
    if (logs_ == nullptr || request.lines().empty() || !request.has_current()) return;
    const std::string job = farm_->JobOf(request.worker_id(), request.current().task_id(), request.current().fence());
    if (job.empty()) return;
    const std::string source = absl::StrCat("worker ", request.info().name());
    for (int i = 0; i < std::min(request.lines_size(), kMostLines); ++i) {
      const v1::LogRecord& record = request.lines(i);
      LogLine line{LogLevelOf(record.level()), record.message(), {}};
      const std::map<std::string, std::string> fields(record.fields().begin(), record.fields().end());
      for (const auto& [key, value] : fields) {
        if (line.fields.size() < kMostFields && key != "source") line.fields.push_back({key.substr(0, 64), value});
      }
      logs_->Append(job, source, line);
    }
  }

  // Returns what the worker reports about its task: the result's bytes, or an error. A result that cannot be read is a
  // failure of the worker.
  absl::StatusOr<std::string> TakeResult(const v1::TaskResult& result) {
    switch (result.outcome_case()) {
      case v1::TaskResult::kInline:
        if (result.inline_().size() > kMaxInlineBytes) return absl::UnavailableError("inline result over 1 MiB");
        return result.inline_();
      case v1::TaskResult::kDigest: {
        absl::StatusOr<int64_t> size_bytes = artifacts_->SizeBytes(result.digest());
        if (!size_bytes.ok()) {
          return absl::UnavailableError(absl::StrCat("the result blob ", result.digest(), " was not written"));
        }
        if (*size_bytes > kMaxResultBytes) return absl::UnavailableError("result blob too large");
        return artifacts_->Get(result.digest());
      }
      case v1::TaskResult::kError: {
        const int code = result.error().code();
        return absl::Status(code > 0 && code <= 16 ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                            CutMessage(result.error().message()));
      }
      default:
        return absl::UnavailableError("a result without outcome");
    }
  }

  Guard* const guard_;
  Farm* const farm_;
  ArtifactStore* const artifacts_;
  DiskExecutor* const executor_;
  JobLogs* const logs_;  // null: lines are not kept
};

class WorkerAdminService : public v1::WorkerAdmin::Service {
 public:
  WorkerAdminService(Guard* guard, Farm* farm, const TokenBook* tokens) : guard_(guard), farm_(farm), tokens_(tokens) {}

  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.WorkerAdmin/ListWorkers");
    if (!permit.ok()) return ToGrpc(permit.status());
    std::set<std::string> drained, quarantined;
    for (const DrainedWorkerRow& row : farm_->Drained()) {
      if (row.HoldsAt(absl::ToUnixMillis(absl::Now()))) drained.insert(row.name);
      if (row.quarantined) quarantined.insert(row.name);
      if (request->page_token().empty()) *response->add_drained() = ToProto(row);
    }
    const absl::StatusOr<ListCursor> cursor = ListCursorOf(request->page_token());
    if (!cursor.ok()) return ToGrpc(cursor.status());
    const int limit = PageLimit(request->limit(), kMostWorkers, kMostWorkers);
    for (const Farm::WorkerStatusRow& row : farm_->WorkerStatuses()) {  // by id
      if (row.worker.id <= cursor->name) continue;
      if (response->workers_size() == limit) {
        response->set_next_page_token(PageTokenOf(ListCursor{0, response->workers(limit - 1).worker_id()}));
        break;
      }
      v1::WorkerStatus* status = response->add_workers();
      status->set_worker_id(row.worker.id);
      status->mutable_info()->ParseFromString(row.worker.info);
      const bool idle = row.view.task_id.empty();
      status->set_state(!row.live                                    ? "lost"
                        : quarantined.count(row.worker.source) > 0   ? "quarantined"
                        : idle && drained.count(row.worker.name) > 0 ? "drained"
                        : row.view.draining                          ? "draining"
                        : idle                                       ? "idle"
                                                                     : "busy");
      status->set_task(row.task_description);
      status->set_last_seen_ms(absl::ToUnixMillis(row.last_seen));
      status->set_tasks_done(row.view.tasks_done);
      status->set_tasks_failed(row.view.tasks_failed);
      status->set_fingerprint(row.worker.fingerprint);
      status->set_source(row.worker.source);
      status->set_trust(row.trust);
      SetKnownBy(row.worker, status);
    }
    return grpc::Status::OK;
  }

  grpc::Status DrainWorker(grpc::ServerContext* context, const v1::DrainWorkerRequest* request,
                           v1::DrainedWorker* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.WorkerAdmin/DrainWorker");
    if (!permit.ok()) return ToGrpc(permit.status());
    if (request->reason().size() > kMaxReasonBytes)
      return ToGrpc(absl::InvalidArgumentError("reason: longer than 1 KiB"));
    const DrainedWorkerRow row{request->name(),          request->reason(),
                               permit->principal().name, absl::ToUnixMillis(absl::Now()),
                               request->from_ms(),       request->until_ms()};
    const absl::Status drained = farm_->Drain(row);
    if (drained.ok()) *response = ToProto(row);
    return ToGrpc(drained);
  }

  grpc::Status QuarantineWorker(grpc::ServerContext* context, const v1::QuarantineWorkerRequest* request,
                                v1::DrainedWorker* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.WorkerAdmin/QuarantineWorker");
    if (!permit.ok()) return ToGrpc(permit.status());
    if (request->name().empty() || request->reason().size() > kMaxReasonBytes) {
      return ToGrpc(absl::InvalidArgumentError("no name, or a reason of more than 1 KiB"));
    }
    const absl::StatusOr<DrainedWorkerRow> row = farm_->Quarantine(
        {request->name(), request->reason(), permit->principal().name, absl::ToUnixMillis(absl::Now())});
    if (row.ok()) *response = ToProto(*row);
    return ToGrpc(row.status());
  }

  grpc::Status ReleaseWorker(grpc::ServerContext* context, const v1::ReleaseWorkerRequest* request,
                             v1::DrainedWorker* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.WorkerAdmin/ReleaseWorker");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<DrainedWorkerRow> released = farm_->Release(request->name());
    if (released.ok()) *response = ToProto(*released);
    return ToGrpc(released.status());
  }

 private:
  void SetKnownBy(const AttachedWorker& worker, v1::WorkerStatus* status) const {
    if (worker.token.empty()) return status->set_known_by(worker.on_socket ? "socket" : "anybody");
    status->set_token_id(worker.token);
    const std::optional<TokenRow> row = tokens_->Find(worker.token);
    status->set_known_by(row.has_value() && row->certificate ? "certificate" : "token");
    if (row.has_value()) status->set_known_until_ms(row->expires_ms);
  }
  static v1::DrainedWorker ToProto(const DrainedWorkerRow& row) {
    v1::DrainedWorker worker;
    worker.set_name(row.name);
    worker.set_reason(row.reason);
    worker.set_by(row.by);
    worker.set_since_ms(row.since_ms);
    worker.set_from_ms(row.from_ms);
    worker.set_until_ms(row.until_ms);
    worker.set_quarantined(row.quarantined);
    return worker;
  }

  Guard* const guard_;
  Farm* const farm_;
  const TokenBook* const tokens_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkerService(Guard* guard, Farm* farm, ArtifactStore* artifacts,
                                                 DiskExecutor* executor, JobLogs* logs) {
  return std::make_unique<WorkerService>(guard, farm, artifacts, executor, logs);
}

std::unique_ptr<grpc::Service> MakeWorkerAdminService(Guard* guard, Farm* farm, const TokenBook* tokens) {
  return std::make_unique<WorkerAdminService>(guard, farm, tokens);
}

}  // namespace fusion
