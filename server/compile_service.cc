#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/api/generator_version.h"
#include "proto/compile.grpc.pb.h"
#include "runtime/base/status_macros.h"
#include "server/artifacts/model_files.h"
#include "server/auth/guard.h"
#include "server/disk_executor.h"
#include "server/grpc_status.h"
#include "server/jobs/job_logs.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/visible_jobs.h"
#include "server/jobs/watched_events.h"
#include "server/list_pages.h"
#include "server/local_devices.h"
#include "server/services.h"

namespace fusion {
namespace {

// One client that watches one job. It reads the store on the executor and writes through gRPC's callbacks, so that a
// watch holds no thread, however long it lasts. It owns itself until OnDone.
class Watch : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  Watch(Permit permit, JobRunner* jobs, Store* store, DiskExecutor* executor, std::string job_id, int64_t resume_seq)
      : principal_(permit.principal()),
        permit_(std::move(permit)),
        jobs_(jobs),
        store_(store),
        executor_(executor),
        job_id_(std::move(job_id)),
        last_seq_(resume_seq) {}

  void Begin() {
    {
      absl::MutexLock lock(&mutex_);
      self_.reset(this);
    }
    Wake();
  }

  void OnWriteDone(bool ok) override {
    {
      absl::MutexLock lock(&mutex_);
      if (ok && !cancelled_ && !ready_.empty()) {
        current_ = std::move(ready_.front());
        ready_.pop_front();
      } else {
        writing_ = false;
        ready_.clear();
      }
      if (!ok) cancelled_ = true;
      if (!writing_) {
        ScheduleLocked();
        return;
      }
    }
    StartWrite(&current_);
  }
  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    ScheduleLocked();
  }
  void OnDone() override {
    permit_.reset();
    if (token_ != 0) jobs_->hub().Unsubscribe(token_);  // Wake is not called after this
    std::shared_ptr<Watch> self;                        // last reference, unless work on the executor holds one
    absl::MutexLock lock(&mutex_);
    std::swap(self, self_);
  }

 private:
  void Wake() {
    absl::MutexLock lock(&mutex_);
    ScheduleLocked();
  }
  void ScheduleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    stale_ = true;
    if (scheduled_ || writing_ || finished_ || self_ == nullptr) return;
    scheduled_ = true;
    executor_->Run([self = self_] { self->Advance(); });
  }
  // Runs on the executor. Reads what is new and starts to write it, or finishes.
  void Advance() {
    {
      absl::MutexLock lock(&mutex_);
      stale_ = false;
      if (cancelled_) {
        scheduled_ = false;
        return FinishLocked(grpc::Status::CANCELLED);
      }
    }
    constexpr int kBatch = 64;
    const bool closed = jobs_->hub().closed();  // asked without our lock, since the hub calls Wake with its lock held
    const absl::Status subscribed = Subscribe();
    absl::StatusOr<WatchedEvents> watched = subscribed.ok() ? ReadWatched(store_, runs_as_, job_id_, last_seq_, kBatch)
                                                            : absl::StatusOr<WatchedEvents>(subscribed);
    if (watched.ok() && watched->job.left_seq > 0) OnlyOwn(watched->job, &watched->events);
    absl::MutexLock lock(&mutex_);
    scheduled_ = false;
    if (!watched.ok()) return FinishLocked(ToGrpc(watched.status()));
    for (const JobEventRow& row : watched->events) {
      v1::JobEvent event;
      event.ParseFromString(row.event);
      event.set_seq(row.seq);
      last_seq_ = row.seq;
      ready_.push_back(std::move(event));
    }
    if (!ready_.empty()) {
      current_ = std::move(ready_.front());
      ready_.pop_front();
      writing_ = true;
      StartWrite(&current_);
    } else if (IsFinal(watched->job.state)) {
      FinishLocked(grpc::Status::OK);
    } else if (closed) {
      FinishLocked(grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                absl::StrCat("the server is shutting down; watch again from seq ", last_seq_)));
    } else if (stale_) {
      ScheduleLocked();
    }
  }
  // Learns which job runs for the submission, and subscribes to its events before the first of them is read.
  absl::Status Subscribe() {
    if (token_ != 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const JobRow job, store_->FindSubmission(job_id_));
    RETURN_IF_ERROR(CheckMaySee(principal_, job));
    runs_as_ = job.runs_as;
    token_ = jobs_->hub().Subscribe(runs_as_, [this] { Wake(); });
    return absl::OkStatus();
  }
  // Removes what the job did after the submission had left it, and adds its cancellation if that has not been sent. (If
  // the job ended with it, that is the job's own last event.)
  void OnlyOwn(const JobRow& job, std::vector<JobEventRow>* rows) {
    while (!rows->empty() && rows->back().seq >= job.left_seq) rows->pop_back();
    const int64_t last = rows->empty() ? last_seq_ : rows->back().seq;
    if (last + 1 != job.left_seq) return;
    v1::JobEvent event;
    event.set_time_ms(job.finished_ms);
    event.set_state(v1::CANCELLED);
    event.set_stage("write");
    event.mutable_error()->set_code(job.error_code);
    event.mutable_error()->set_message(job.error_message);
    rows->push_back({job.left_seq, event.SerializeAsString()});
  }
  void FinishLocked(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    finished_ = true;
    Finish(status);
  }

  const Principal principal_;
  std::optional<Permit> permit_;  // until OnDone
  JobRunner* const jobs_;
  Store* const store_;
  DiskExecutor* const executor_;
  const std::string job_id_;
  int64_t token_ = 0;    // 0: not subscribed yet. Written on the executor, before the call can finish
  std::string runs_as_;  // used only on the executor
  int64_t last_seq_;     // of the events read so far; used only on the executor
  v1::JobEvent current_;

  absl::Mutex mutex_;
  std::shared_ptr<Watch> self_ ABSL_GUARDED_BY(mutex_);  // shared with work on the executor; dropped by OnDone
  std::deque<v1::JobEvent> ready_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  bool stale_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// A watch that ends at once with an error.
class RefusedWatch : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  explicit RefusedWatch(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

class CompileService : public v1::Compile::WithCallbackMethod_Watch<v1::Compile::Service> {
 public:
  CompileService(Guard* guard, JobRunner* jobs, Store* store, Farm* farm, DiskExecutor* executor,
                 const LocalDevices* devices, JobLogs* logs, std::string compilation_limits)
      : guard_(guard),
        jobs_(jobs),
        store_(store),
        farm_(farm),
        executor_(executor),
        devices_(devices),
        logs_(logs),
        compilation_limits_(std::move(compilation_limits)) {}

  grpc::Status GetCapabilities(grpc::ServerContext* context, const v1::GetCapabilitiesRequest*,
                               v1::Capabilities* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/GetCapabilities");
    if (!permit.ok()) return ToGrpc(permit.status());
    response->set_server_version(kServerVersion);
    response->set_protocol_min(1);
    response->set_protocol_max(1);
    response->set_generator_version(kGeneratorVersion);
    response->set_chunk_size_bytes(kChunkBytes);
    response->set_max_model_bytes(kMaxModelBytes);
    response->set_compilation_limits(compilation_limits_);
    for (const std::string& planner : jobs_->planners()) response->add_planners(planner);
    std::map<std::string, v1::TargetInfo> targets;
    for (const Farm::WorkerStatusRow& row : farm_->WorkerStatuses()) {
      if (!row.live || row.worker.measure_kinds.empty()) continue;
      v1::TargetInfo& target = targets[row.worker.fingerprint];
      target.set_kind(row.worker.device.kind);
      target.set_workers(target.workers() + 1);
      target.set_device_name(row.worker.device.name);
      target.set_fingerprint(row.worker.fingerprint);
    }
    for (auto& [fingerprint, target] : targets) *response->add_targets() = std::move(target);
    if (devices_ == nullptr) return grpc::Status::OK;
    for (const LocalDevice& device : devices_->Devices()) {
      v1::LocalDevice* local = response->add_local_devices();
      local->set_kind(device.kind);
      local->set_state(NameOf(device.state));
      local->set_words(device.words);
    }
    return grpc::Status::OK;
  }

  grpc::Status Submit(grpc::ServerContext* context, const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/Submit");
    if (!permit.ok()) return ToGrpc(permit.status());
    absl::StatusOr<v1::SubmitResponse> submitted =
        jobs_->Submit(OfTenant(*request, permit->principal()), permit->principal().OwnerName(),
                      [context] { return context->IsCancelled(); });
    if (!submitted.ok()) return ToGrpc(submitted.status());
    *response = *std::move(submitted);
    return grpc::Status::OK;
  }

  grpc::Status Plan(grpc::ServerContext* context, const v1::SubmitRequest* request,
                    v1::PlanResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/Plan");
    if (!permit.ok()) return ToGrpc(permit.status());
    absl::StatusOr<v1::PlanResponse> plan =
        jobs_->Plan(OfTenant(*request, permit->principal()), [context] { return context->IsCancelled(); });
    if (!plan.ok()) return ToGrpc(plan.status());
    *response = *std::move(plan);
    return grpc::Status::OK;
  }

  grpc::ServerWriteReactor<v1::JobEvent>* Watch(grpc::CallbackServerContext* context,
                                                const v1::WatchRequest* request) override {
    absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/Watch");
    if (!permit.ok()) return new RefusedWatch(permit.status());
    auto* watch =
        new fusion::Watch(*std::move(permit), jobs_, store_, executor_, request->job_id(), request->resume_seq());
    watch->Begin();
    return watch;
  }

  grpc::Status Get(grpc::ServerContext* context, const v1::GetJobRequest* request, v1::Job* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/Get");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<JobRow> job = FindVisibleJob(*store_, permit->principal(), request->job_id());
    if (job.ok()) response->set_trace_id(TraceOf(*job));
    return Answer(job, response);
  }

  grpc::Status Logs(grpc::ServerContext* context, const v1::JobLogsRequest* request,
                    v1::JobLogsResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/Logs");
    if (!permit.ok()) return ToGrpc(permit.status());
    return ToGrpc(ReadLogs(permit->principal(), *request, response));
  }

  grpc::Status List(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                    v1::ListJobsResponse* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/List");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<JobCursor> cursor = JobCursorOf(request->page_token());
    if (!cursor.ok()) return ToGrpc(cursor.status());
    const absl::StatusOr<JobPage> page =
        store_->PageOfJobs(PageLimit(request->limit(), 50, 1000), OnlyOf(permit->principal()), *cursor);
    if (!page.ok()) return ToGrpc(page.status());
    for (const JobRow& job : page->jobs) *response->add_jobs() = JobToProto(job);
    if (page->next.has_value()) response->set_next_page_token(PageTokenOf(*page->next));
    return grpc::Status::OK;
  }

  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelJobRequest* request, v1::Job* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/Cancel");
    if (!permit.ok()) return ToGrpc(permit.status());
    const absl::StatusOr<JobRow> job = FindVisibleJob(*store_, permit->principal(), request->job_id());
    return Answer(job.ok() ? jobs_->Cancel(request->job_id()) : job, response);
  }

  grpc::Status Pin(grpc::ServerContext* context, const v1::PinJobRequest* request, v1::Job* response) override {
    const absl::StatusOr<Permit> permit = guard_->Authorize(context, "/fusion.v1.Compile/Pin");
    if (!permit.ok()) return ToGrpc(permit.status());
    absl::StatusOr<JobRow> job = FindVisibleJob(*store_, permit->principal(), request->job_id());
    if (!job.ok()) return ToGrpc(job.status());
    if (const absl::Status pinned = store_->PinJob(request->job_id(), request->pinned()); !pinned.ok()) {
      return ToGrpc(pinned);
    }
    return Answer(FindVisibleJob(*store_, permit->principal(), request->job_id()), response);
  }

 private:
  // The request as this caller's, whatever it says itself.
  static v1::SubmitRequest OfTenant(v1::SubmitRequest request, const Principal& principal) {
    request.set_tenant(principal.tenant);
    return request;
  }
  static grpc::Status Answer(const absl::StatusOr<JobRow>& job, v1::Job* response) {
    if (!job.ok()) return ToGrpc(job.status());
    const std::string trace = response->trace_id();
    *response = JobToProto(*job);
    response->set_trace_id(trace);
    return grpc::Status::OK;
  }
  absl::Status ReadLogs(const Principal& principal, const v1::JobLogsRequest& request, v1::JobLogsResponse* response) {
    constexpr size_t kMostBytes = 2 << 20;  // of the 4 MiB that a receiver accepts
    // First, so that a job that ends meanwhile is asked about once more.
    ASSIGN_OR_RETURN(const JobRow job, FindVisibleJob(*store_, principal, request.job_id()));
    response->set_ended(IsFinal(job.state));
    response->set_next_after(request.after());
    if (logs_ == nullptr) return absl::OkStatus();
    const int limit = request.limit() <= 0 ? 500 : std::min(request.limit(), 1000);
    ASSIGN_OR_RETURN(const JobLogs::Page page,
                     logs_->Read(job.runs_as, request.after(), limit, LogLevelOf(request.level()), kMostBytes));
    response->set_more(page.more);
    for (const JobLogLine& line : page.lines) {
      response->set_next_after(line.number);
      if (IsOfAnother(line.line, job, principal)) continue;
      v1::LogRecord& record = *response->add_lines();
      record.set_number(line.number);
      record.set_time_ms(line.time_ms);
      record.set_level(LogLevels()[static_cast<size_t>(line.line.level)]);
      record.set_source(line.source);
      record.set_message(line.line.message);
      for (const LogField& field : line.line.fields) (*record.mutable_fields())[field.key] = field.value;
    }
    return absl::OkStatus();
  }
  // Submissions of several callers may share a job. None learns who the others are.
  static bool IsOfAnother(const LogLine& line, const JobRow& submission, const Principal& principal) {
    if (!OnlyOf(principal).has_value()) return false;
    return std::any_of(line.fields.begin(), line.fields.end(), [&](const LogField& field) {
      return field.key == "submission" && field.value != submission.id;
    });
  }

  Guard* const guard_;
  JobRunner* const jobs_;
  Store* const store_;
  Farm* const farm_;
  DiskExecutor* const executor_;
  const LocalDevices* const devices_;
  JobLogs* const logs_;  // null: none are kept
  const std::string compilation_limits_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCompileService(Guard* guard, JobRunner* jobs, Store* store, Farm* farm,
                                                  DiskExecutor* executor, const LocalDevices* devices, JobLogs* logs,
                                                  const std::string& compilation_limits) {
  return std::make_unique<CompileService>(guard, jobs, store, farm, executor, devices, logs, compilation_limits);
}

}  // namespace fusion
