// Scheduler: decides which worker does which task next. It is a pure state machine without thread, clock or store. The
// caller passes the time, brings the store to what TakeChanged() returns before any of it becomes visible outside
// (stored_tasks.h), and locks. The times that it passes are those of a steady clock: only their differences mean
// something.
//
// A task waits in state kQueued until a worker that offers its requirement asks for work. Owners of jobs take turns,
// and priorities order the tasks of one (task_queue.h). The worker leases it under a fence number that no earlier lease
// of any task had. Heartbeats renew the lease. When a lease expires or an attempt fails, the task is queued again,
// preferably for a worker that has not tried it. After `max_attempts` attempts it is kPoisoned, and its evidence
// describes each attempt. Tasks with equal keys are one task with several waiters; a task without waiters is cancelled.
//
// Four limits, none of which relies on the worker: the lease (heartbeats), start to close (TaskRow::timeout_ms and a
// slack, so that the worker's own deadline comes first), schedule to start, and schedule to close over all attempts.
#ifndef FUSION_SERVER_SCHEDULER_SCHEDULER_H_
#define FUSION_SERVER_SCHEDULER_SCHEDULER_H_

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "db/stores/store.h"
#include "server/scheduler/task_queue.h"

namespace fusion {

struct SchedulerConfig {
  absl::Duration lease = absl::Seconds(30);
  absl::Duration heartbeat = absl::Seconds(10);
  int max_attempts = 3;
  // The time that an attempt may take beyond its task's timeout: to fetch the payload and to deliver the result.
  absl::Duration close_slack = absl::Minutes(2);
  // How long an attempt may wait for its turn on the worker's machine. Workers of protocol 3 do not say that they wait.
  absl::Duration longest_turn = absl::Minutes(30);
  absl::Duration schedule_to_start = absl::Hours(24);
  absl::Duration schedule_to_close = absl::Hours(48);
  // How long a task from before a restart is kept if nobody asks for it.
  absl::Duration orphan = absl::Minutes(10);
  // A worker that fails so many tasks in a row, each of which another one then does, is suspect.
  int failures_of_a_suspect = 3;
};

// A worker's word about the task that it holds.
enum class TaskStage { kUnknown, kWaiting, kRunning };

struct WorkerView {
  std::string id;
  std::set<std::string> offers;  // the requirements that it fulfils
  bool draining = false;         // takes no new task: by its own word, or kept from it
  std::string task_id;           // "" = idle
  absl::Time last_seen;
  int64_t tasks_done = 0, tasks_failed = 0;
};

struct SchedulerCounts {
  int64_t lease_expiries = 0, retries = 0, poisoned = 0;
};

class Scheduler {
 public:
  Scheduler(const SchedulerConfig& config, int64_t last_fence) : config_(config), last_fence_(last_fence) {}

  // Every fence from now on is above `last_fence`.
  void StartAfter(int64_t last_fence) { last_fence_ = std::max(last_fence_, last_fence); }

  // Adds a task from before a restart, without a waiter. A leased task keeps its worker and fence for a lease and a
  // heartbeat from `now`, so that a living worker can reconnect and deliver: it may pause between two calls for as long
  // as kLongestReconnectPause (proto/worker_protocol.h).
  void Restore(const TaskRow& row, absl::Time now);

  // Says whose a job is and how urgent, from its start to its end. Tasks of other jobs are those of the owner "".
  void SetJob(const std::string& job, std::vector<std::string> owners, int priority) {
    queue_.SetJob(job, std::move(owners), priority);
  }
  void ForgetJob(const std::string& job) { queue_.ForgetJob(job); }
  // Adds one waiter, row.job, to the task with row.key, and creates the task if needed. A task from before a restart
  // that is done counts, if this is the first to ask for it. Returns the task's id.
  std::string Add(TaskRow row, absl::Time now);
  // Removes a waiter of that job, if there is one. If it was the last one, cancels the task if it is not final, and
  // forgets it.
  void Release(const std::string& task_id, absl::Time now, const std::string& job = "");
  // Returns nullptr for an unknown task. The pointer is valid until the next change.
  const TaskRow* Find(const std::string& task_id) const;

  // Records that the worker exists and what it offers.
  void Seen(const std::string& worker_id, std::set<std::string> offers, bool draining, absl::Time now);
  // Who answers for the worker (judge.h); "": nobody needs to. For a worker that was seen.
  void SetSource(const std::string& worker_id, const std::string& source);
  // Keeps the worker from new tasks, whatever it says itself, or no longer. Its running task goes on. For a worker that
  // was seen.
  void KeepFromTasks(const std::string& worker_id, bool keep);
  // Records that the worker's connection is gone: it gets no task until it is seen again. Its running task keeps its
  // lease.
  void Disconnected(const std::string& worker_id, absl::Time now);
  // Renews the lease. Returns false if there is no such lease (any more); the worker must then drop the task.
  bool Renew(const std::string& worker_id, const std::string& task_id, int64_t fence, TaskStage stage, absl::Time now);
  // Returns whether the worker holds the present lease, and `fence` is its fence.
  bool Holds(const std::string& worker_id, const std::string& task_id, int64_t fence) const;
  // Record the end of a lease. They return false and do nothing unless the worker Holds it.
  bool Complete(const std::string& worker_id, const std::string& task_id, int64_t fence, absl::Time now);
  bool Fail(const std::string& worker_id, const std::string& task_id, int64_t fence, const absl::Status& error,
            absl::Time now);
  // The server cannot read the payload. The attempt counts neither for the task nor against its worker, and no worker
  // gets the task until GivePayload. A task whose payload is lost more often than `max_attempts` is poisoned.
  bool LosePayload(const std::string& worker_id, const std::string& task_id, int64_t fence, absl::Time now);

  // The store's word about a lease that Assign has given and nobody has heard of yet, or that was to be renewed: it has
  // another fence, or it is another scheduler's. The attempt is then none, and the task waits for a lease.
  void TakeFence(const std::string& task_id, int64_t fence);
  void LoseClaim(const std::string& task_id, absl::Time now);

  // The result does not count alone (judge.h): another source has to measure it. The attempt does not count for the
  // task, and no worker of this one's source gets the task again. `refused`: it counts against the worker, and the
  // evidence is kept.
  bool Again(const std::string& worker_id, const std::string& task_id, int64_t fence, const std::string& evidence,
             bool refused, absl::Time now);
  // Is the task queued without a worker left that may take it? Ones that have just disconnected may come back.
  bool IsStranded(const std::string& task_id, absl::Time now) const;
  // Could a worker of a source other than the holder's, and than those that did the task before, do it?
  bool AnotherMay(const std::string& task_id, absl::Time now) const;
  // End a queued task: as done by that worker, or given up for that reason.
  void CompleteQueued(const std::string& task_id, const std::string& worker_id, absl::Time now);
  void GiveUpQueued(const std::string& task_id, const std::string& why, absl::Time now);

  // Whether the task's payload may be replaced by an equivalent one: no worker has it.
  bool TakesPayload(const std::string& task_id) const;
  // Whether the task waits for one.
  bool LacksPayload(const std::string& task_id) const;
  // The payload of a task that TakesPayload.
  void GivePayload(const std::string& task_id, const std::string& digest, int64_t size_bytes);

  // Returns the task that this worker shall run: its leased task (delivered again in case the answer was lost), else
  // the queued task that fits and whose turn it is, else nothing.
  std::optional<TaskRow> Assign(const std::string& worker_id, absl::Time now);
  bool HasQueued() const { return !queue_.empty(); }  // tasks that somebody waits for
  // Has anything happened since the last call by which a worker that Assign gave nothing might get something? Time that
  // passes is nothing that happens: ask all of them now and then.
  bool TakeChance() { return std::exchange(chance_, false); }
  // Rises when a worker comes, comes back or may have tasks again, or describes itself anew.
  int64_t arrivals() const { return arrivals_; }
  // Enforces the limits. Forgets idle workers that were not seen for ten lease periods, and tasks from before a restart
  // that nobody asked for. Renew first whatever has arrived.
  void Tick(absl::Time now);
  // All limits are reached `blind` later: for that long the caller has heard no worker, and that is not their fault.
  void Extend(absl::Duration blind);

  // Returns the workers that have become suspect since the last call. Their failures from before do not count again.
  std::vector<std::string> TakeSuspects() { return std::exchange(suspects_, {}); }

  // Returns the rows that changed since the last call; the caller stores them. Those of tasks that are over come first:
  // a key may be in flight again under another id.
  std::vector<TaskRow> TakeChanged();

  // Counts workers that were seen within the last lease period, are connected and are not draining.
  int WorkersThatOffer(const std::string& requirement, absl::Time now) const;
  bool SomebodyOffers(const std::string& requirement, absl::Time now) const;
  bool IsLive(const WorkerView& worker, absl::Time now) const;
  // Valid until the next call that is not const.
  std::vector<const WorkerView*> Workers() const;
  // Tasks that wait for a worker, by kind of device. Those that nobody asks for since a restart do not count.
  std::map<std::string, int> QueuedTasks() const;
  absl::Duration OldestQueuedAge(absl::Time now) const;
  const SchedulerCounts& counts() const { return counts_; }
  const SchedulerConfig& config() const { return config_; }

 private:
  bool Offers(const WorkerView& worker, const std::string& requirement, absl::Time now) const;
  struct LiveTask {
    TaskRow row;
    absl::Time queued_at, lease_until;
    absl::Time added_at;   // or restored
    absl::Time leased_at;  // this attempt
    absl::Time ran_at;     // when this attempt was last known not to run yet
    TaskStage stage = TaskStage::kUnknown;
    std::set<std::string> tried;
    std::set<std::string> heard;                   // sources that get it no more
    absl::Time not_before = absl::InfinitePast();  // another scheduler has it until then, as far as is known
    bool lacks_payload = false;
    int payloads_lost = 0;
    std::vector<std::string> jobs;  // one for each waiter
    int64_t order = 0;              // of arrival, also after a retry
    bool waits = false;             // stands in the queue for each of its jobs

    size_t waiters() const { return jobs.size(); }
  };
  struct LiveWorker {
    WorkerView view;
    bool connected = true;
    absl::Time gone_at;  // if it is not connected
    std::string source;
    bool says_draining = false, kept_from_tasks = false;
    // Since its last success: keys of tasks at which it failed, and how many such tasks others have done.
    std::set<std::string> failed;
    int done_by_others = 0;
  };

  void Change(LiveTask& task, TaskPhase state, absl::Time now);
  void AddWaiter(LiveTask& task, const std::string& job);
  bool IsUnasked(const TaskRow& row) const;
  void EndLease(LiveTask& task);
  // The worker has done the task, at which others may have failed.
  void Compare(const std::string& worker_id, const std::string& key);
  void Poison(LiveTask& task, const std::string& evidence, absl::Time now);
  // Returns which limit the task has reached; "" for none.
  std::string LimitReached(const LiveTask& task, absl::Time now) const;
  void EndAttempt(LiveTask& task, const std::string& evidence, bool final_error, absl::Time now);
  bool MayTry(const LiveTask& task, const LiveWorker& worker, absl::Time now) const;
  // A worker whose source was not heard, here or soon back. `but`: a source that does not count.
  bool SomebodyMay(const LiveTask& task, const std::string& but, absl::Time now) const;

  const SchedulerConfig config_;
  int64_t last_fence_;
  int64_t next_order_ = 0;
  std::map<std::string, LiveTask> tasks_;      // by id
  std::map<std::string, std::string> by_key_;  // key to id, for tasks that are not final
  // Key to id, for tasks from before a restart that are done before anybody asked for them again. They are kept as long
  // as orphans: whoever looked into the database just before the result was stored asks just after.
  std::map<std::string, std::string> unasked_;
  TaskQueue queue_;
  std::map<std::string, LiveWorker> workers_;
  std::set<std::string> changed_;
  std::vector<TaskRow> forgotten_changes_;  // changed rows of tasks that are already forgotten
  SchedulerCounts counts_;
  std::vector<std::string> suspects_;
  bool chance_ = false;
  int64_t arrivals_ = 0;
  absl::Time forget_at_ = absl::InfinitePast();  // workers
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_SCHEDULER_H_
