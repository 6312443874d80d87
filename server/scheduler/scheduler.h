// Scheduler: which worker does which task next. A pure state machine: no thread, no clock, no store; the caller passes
// the time, persists what TakeChanged() returns before anything of it becomes visible outside, and locks.
//
// A task waits in state kQueued until a worker that offers its requirement asks; then it is leased under a fence number
// that no earlier lease of any task had. The lease is renewed by heartbeats. A lease that runs out and a failed attempt
// put the task back, preferably for a worker that has not tried it, until `max_attempts`; then it is kPoisoned and its
// evidence tells each attempt. Tasks with equal keys are one task with several waiters; without a waiter it is
// cancelled.
#ifndef FUSION_SERVER_SCHEDULER_SCHEDULER_H_
#define FUSION_SERVER_SCHEDULER_SCHEDULER_H_

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "db/stores/store.h"

namespace fusion {

struct SchedulerConfig {
  absl::Duration lease = absl::Seconds(30);
  absl::Duration heartbeat = absl::Seconds(10);
  int max_attempts = 3;
};

struct WorkerView {
  std::string id;
  std::set<std::string> offers;  // requirements it fulfils
  bool draining = false;
  std::string task_id;  // "" = idle
  absl::Time last_seen;
  int64_t tasks_done = 0, tasks_failed = 0;
};

struct SchedulerCounts {
  int64_t lease_expiries = 0, retries = 0, poisoned = 0;
};

class Scheduler {
 public:
  Scheduler(const SchedulerConfig& config, int64_t last_fence) : config_(config), last_fence_(last_fence) {}

  // A task from before a restart, without waiter. A leased one keeps its worker and fence for a heartbeat and a
  // half from `now`, so that a worker that lives reconnects and delivers.
  void Restore(const TaskRow& row, absl::Time now);

  // Adds one waiter to the task with row.key, making it if needed. Returns its id.
  std::string Add(TaskRow row, absl::Time now);
  // A waiter leaves; the last one cancels a task that is not final, and forgets one that is.
  void Release(const std::string& task_id, absl::Time now);
  // nullptr: unknown. Valid until the next change.
  const TaskRow* Find(const std::string& task_id) const;

  // A worker speaks: it exists and offers this.
  void Seen(const std::string& worker_id, std::set<std::string> offers, bool draining, absl::Time now);
  // A worker's connection is gone: no task for it until it is seen again. What it runs keeps its lease.
  void Disconnected(const std::string& worker_id);
  // Renews the lease. False: no such lease (any more); the worker must drop the task.
  bool Renew(const std::string& worker_id, const std::string& task_id, int64_t fence, absl::Time now);
  // The fence is that of the present lease.
  bool Holds(const std::string& task_id, int64_t fence) const;
  // Results of a lease; false and without effect when the fence is old.
  bool Complete(const std::string& task_id, int64_t fence, const std::string& result_digest, absl::Time now);
  bool Fail(const std::string& task_id, int64_t fence, const absl::Status& error, absl::Time now);

  // What this worker should be doing: the lease it has (delivered again if the answer was lost), else the oldest queued
  // task that fits, else nothing.
  std::optional<TaskRow> Assign(const std::string& worker_id, absl::Time now);
  // Expires leases and forgets workers that were not seen for ten leases.
  void Tick(absl::Time now);

  // Rows that changed since the last call, to be persisted.
  std::vector<TaskRow> TakeChanged();

  // Seen within the last lease, connected and not draining.
  int WorkersThatOffer(const std::string& requirement, absl::Time now) const;
  bool IsLive(const WorkerView& worker, absl::Time now) const;
  std::vector<WorkerView> Workers() const;
  int QueuedTasks(const std::string& device_kind) const;
  absl::Duration OldestQueuedAge(absl::Time now) const;
  const SchedulerCounts& counts() const { return counts_; }
  const SchedulerConfig& config() const { return config_; }

 private:
  struct LiveTask {
    TaskRow row;
    absl::Time queued_at, lease_until;
    std::set<std::string> tried;
    int waiters = 0;
    int64_t order = 0;  // of arrival: first come, first served, also after a retry
  };
  struct LiveWorker {
    WorkerView view;
    bool connected = true;
  };

  void Change(LiveTask& task, TaskPhase state, absl::Time now);
  void EndLease(LiveTask& task);
  void EndAttempt(LiveTask& task, const std::string& evidence, bool final_error, absl::Time now);
  bool MayTry(const LiveTask& task, const std::string& worker_id, absl::Time now) const;

  const SchedulerConfig config_;
  int64_t last_fence_;
  int64_t next_order_ = 0;
  std::map<std::string, LiveTask> tasks_;                         // by id
  std::map<std::string, std::string> by_key_;                     // key to id, of tasks that are not final
  std::map<std::string, std::map<int64_t, std::string>> queued_;  // requirement to (order to id)
  std::map<std::string, LiveWorker> workers_;
  std::set<std::string> changed_;
  std::vector<TaskRow> forgotten_changes_;  // changed rows of tasks that are gone already
  SchedulerCounts counts_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_SCHEDULER_H_
