// Farm: the scheduler with its thread, its store and its waiters. Compilations ask it to run tasks and block; workers
// ask it for work through polls. One pump thread persists every change of the scheduler in one transaction and only
// then answers polls and wakes compilations, so that nothing visible outside can be lost by a crash.
#ifndef FUSION_SERVER_SCHEDULER_FARM_H_
#define FUSION_SERVER_SCHEDULER_FARM_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "compiler/cost/device_model.h"
#include "server/artifacts/artifact_store.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/scheduler.h"

namespace fusion {

std::string BuildRequirement(const std::string& kind);                                    // "build:cpu"
std::string MeasureRequirement(const std::string& kind, const std::string& fingerprint);  // "measure:cpu:<fp>"

// The workers that fusiond starts itself, one for a kind of device, cannot outlive it: their leases end with the
// server. "local" for cpu, else "local-opencl".
std::string LocalWorkerName(const std::string& kind);
bool IsLocalWorkerName(const std::string& name);

struct AttachedWorker {
  std::string id, name, version, toolchain;
  std::set<std::string> toolchain_kinds;
  std::set<std::string> measure_kinds;  // empty: it only builds; then the device has no kind and no fingerprint
  DeviceModel device;
  std::string fingerprint;
  std::string info;  // serialised v1.WorkerInfo, for listing
};

struct FarmTask {
  TaskType kind = TaskType::kBuild;
  std::string key, device_kind, requirement, description, payload;
  absl::Duration timeout = absl::Seconds(120);
  int threads = 0;
};

struct FarmOutcome {
  absl::Status status;  // not OK: poisoned (the message is the evidence), or nobody was there to do it
  std::string result;
  std::string worker, toolchain;
};

struct FarmWait {
  std::function<bool()> cancelled;                                                // may be empty
  std::function<void(int64_t done, int64_t total, const std::string&)> progress;  // may be empty
  absl::Duration queue_timeout =
      absl::Minutes(10);  // without a worker that could do the task; then FAILED_PRECONDITION
};

// Makes a result's content durable (a measurement, binaries) before its task is done. An error rejects the result: the
// worker's attempt has failed.
using ResultAcceptor =
    std::function<absl::Status(const TaskRow& task, const std::string& result, const AttachedWorker& worker)>;

// What a poll is answered.
struct FarmAnswer {
  absl::Status status;
  std::optional<TaskRow> task;
  absl::Duration next_sync;
};

struct FarmPoll {
  std::string worker_id;
  // What the worker said it runs, and how it ended if it did.
  std::string task_id;
  int64_t fence = 0;
  bool finished = false;
  absl::StatusOr<std::string> result = absl::UnknownError("unset");  // bytes
  bool draining = false;
  absl::Duration max_wait;
  std::function<void(const FarmAnswer&)> reply;  // called once, on the pump thread
  std::shared_ptr<std::atomic<bool>> gone;       // set when the caller hung up; the reply is still called
};

class Farm {
 public:
  Farm(Store* store, ArtifactStore* artifacts, Metrics* metrics, ResultAcceptor acceptor, SchedulerConfig config = {});
  ~Farm();

  // Takes up unfinished tasks of the store. Before Start.
  absl::Status Restore();
  void Start();
  // Answers all polls with "idle" (a running task goes on), fails all waits with UNAVAILABLE and leaves their tasks as
  // they are, for the next start. Idempotent.
  void Stop();

  // Worker side. Register before the first Poll of a worker, and when what it says of itself changes.
  absl::Status Register(AttachedWorker worker);
  // Attached under exactly this serialised WorkerInfo.
  bool IsRegistered(const std::string& worker_id, const std::string& info) const;
  // May block on the disk for a result; not to be called on a thread of gRPC.
  void Poll(FarmPoll poll);
  void HungUp(const std::string& worker_id);

  // Compiler side: blocks until each task has an outcome (parallel to `tasks`). CANCELLED, UNAVAILABLE at shutdown.
  absl::StatusOr<std::vector<FarmOutcome>> RunAll(absl::Span<const FarmTask> tasks, const FarmWait& wait);

  // That are attached, idle or not.
  int WorkersThatOffer(const std::string& requirement) const;
  // Device model of an attached worker that measures the target's kind and, if it names one, its architecture.
  std::optional<AttachedWorker> FindDevice(const std::string& target) const;
  // Waits until there is one, or `timeout`.
  std::optional<AttachedWorker> AwaitDevice(const std::string& target, absl::Duration timeout,
                                            const std::function<bool()>& cancelled = nullptr) const;
  // "cpu", "cuda"…; "none" when no worker measures anything.
  std::string AttachedKinds() const;
  struct WorkerStatusRow {
    AttachedWorker worker;
    WorkerView view;
    bool live = false;
    std::string task_description;
  };
  std::vector<WorkerStatusRow> WorkerStatuses() const;

 private:
  struct HeldPoll {
    FarmPoll poll;
    absl::Time until;
  };
  void Pump();
  // One round: time, assignments, persistence, answers.
  void PumpOnce();
  // Judges what a finished poll brings: the digest of a good result, else the error of the attempt.
  absl::StatusOr<std::string> TakeResult(const FarmPoll& poll);
  void UpdateMetrics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<AttachedWorker> FindDeviceLocked(const std::string& target) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string AttachedKindsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store* const store_;
  ArtifactStore* const artifacts_;
  Metrics* const metrics_;
  const ResultAcceptor acceptor_;

  mutable absl::Mutex mutex_;
  mutable absl::CondVar changed_;  // outcomes and workers
  absl::CondVar pump_wanted_;
  bool pump_pending_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool pump_ended_ ABSL_GUARDED_BY(mutex_) = false;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, AttachedWorker> attached_ ABSL_GUARDED_BY(mutex_);
  std::vector<HeldPoll> polls_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, TaskRow> durable_ ABSL_GUARDED_BY(mutex_);  // final rows that are committed, by task id
  SchedulerCounts reported_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> reported_kinds_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_FARM_H_
