// Farm: the scheduler with its thread, its store and its waiters. Compilations ask it to run tasks, and block; workers
// poll it for work. One pump thread stores every change of the scheduler, as claims (db/stores/task_calls.h) with what
// results have found out, in one transaction, and only then answers polls and wakes compilations. A crash therefore
// loses nothing that was visible outside. A task costs at most three commits and no other sync: when it is queued,
// leased and done.
#ifndef FUSION_SERVER_SCHEDULER_FARM_H_
#define FUSION_SERVER_SCHEDULER_FARM_H_

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "compiler/cost/device_model.h"
#include "runtime/base/steady_clock.h"
#include "runtime/log/log.h"
#include "server/artifacts/artifact_store.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/attached_worker.h"
#include "server/scheduler/device_wish.h"
#include "server/scheduler/judge.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/scheduler/stored_tasks.h"
#include "server/scheduler/testimony.h"
#include "server/scheduler/threads.h"

namespace fusion {

std::string BuildRequirement(const std::string& kind);                                    // "build:cpu"
std::string TrustedBuildRequirement(const std::string& kind);                             // "build:cpu:trusted"
std::string MeasureRequirement(const std::string& kind, const std::string& fingerprint);  // "measure:cpu:<fp>"
// To run whole models, which workers of an older protocol cannot: "models:cpu:<fp>".
std::string ModelRequirement(const std::string& kind, const std::string& fingerprint);

// The workers that fusiond starts itself, one for each kind of device, cannot outlive it, so their leases end with the
// server. Their names are "local" for cpu and "local-opencl" etc. for other kinds.
std::string LocalWorkerName(const std::string& kind);
bool IsLocalWorkerName(const std::string& name);

// Workers that build for a kind, have one toolchain and came by one token: their word is one word.
struct FarmBuilder {
  std::string kind;
  std::string token = {};      // "": through the socket
  std::string toolchain = {};  // its digest
  bool trusted = true, reproduces = false;
  std::string name = {};  // of one of the workers, for people

  std::string Requirement() const;  // that only its workers offer
};

LogLine TaskLine(LogLevel level, std::string message, const TaskRow& task, const std::string& worker);

struct FarmTask {
  TaskType kind = TaskType::kBuild;
  std::string key, device_kind, requirement, description, payload;
  std::string job;         // the id of the job that asks, for logs
  std::string trace = {};  // of that job
  absl::Duration timeout = absl::Seconds(120);
  int threads = 0;
};

struct FarmOutcome {
  absl::Status status;  // if not OK: the task is poisoned (the message is the evidence), or no worker could do it
  std::string result;
  std::string worker, toolchain;
};

// FarmLack: the worker for which a wait waits.
struct FarmLack {
  std::string kind = {};                     // of device
  std::string requirement = {};              // that a worker has to offer; "": another builder for the kind
  std::set<std::string> besides = {};        // requirements of the builders that are there and do not do
  std::string words = {};                    // "no worker for cpu; kinds attached: none"
  std::string failure = {};                  // how the job fails if nobody comes in time; "": it goes on without
  absl::Duration waited = {}, timeout = {};  // so far, and at most

  // By what it is, and not by how long it has lasted.
  bool operator<(const FarmLack& other) const {
    return std::tie(kind, requirement, besides) < std::tie(other.kind, other.requirement, other.besides);
  }
};

struct FarmWait {
  std::function<bool()> cancelled;                                                // may be empty
  std::function<void(int64_t done, int64_t total, const std::string&)> progress;  // may be empty
  absl::Duration queue_timeout =
      absl::Minutes(10);  // without a worker that could do the task; after that the wait fails with FAILED_PRECONDITION
  // Called with true when there is no worker that could do the tasks, and with false when there is one or the wait
  // ends. May block. May be empty.
  std::function<void(bool)> away = {};
  // Asked now and then while there is no such worker. True: the wait is given up, and fails with CANCELLED. May be
  // empty.
  std::function<bool(const FarmLack&)> gives_up = {};
  // How long the job has waited before, by requirement. That is a part of `queue_timeout`.
  std::map<std::string, absl::Duration> waited = {};
  bool needs = false;  // the job fails without

  absl::Duration WaitedFor(const std::string& requirement) const {
    const auto before = waited.find(requirement);
    return before == waited.end() ? absl::ZeroDuration() : before->second;
  }
};

// Returns the rows (measurements, binaries) that are stored in the commit that ends the task. An error rejects the
// result, and the worker's attempt has failed.
using ResultAcceptor = std::function<absl::StatusOr<Accepted>(const TaskRow& task, const std::string& payload,
                                                              const std::string& result, const AttachedWorker& worker)>;

// The answer to a poll.
struct FarmAnswer {
  absl::Status status;
  std::optional<TaskRow> task;
  absl::Duration next_sync;
};

struct FarmPoll {
  std::string worker_id;
  // The task that the worker says it runs, and how it ended, if it did.
  std::string task_id;
  int64_t fence = 0;
  bool finished = false;
  TaskStage stage = TaskStage::kUnknown;
  absl::StatusOr<std::string> result = absl::UnknownError("unset");  // the bytes of the result
  bool draining = false;
  absl::Duration max_wait;
  std::function<void(const FarmAnswer&)> reply;  // called once, on the pump thread
  // Set when the caller hung up; `reply` is still called. It also names the call for HungUp.
  std::shared_ptr<std::atomic<bool>> gone;

  // Does the worker say that it goes on with a task?
  bool IsHeartbeat() const { return !task_id.empty() && !finished; }
};

class Farm {
 public:
  // `clock` is steady; tests give their own, and the simulation its own threads.
  Farm(Store* store, ArtifactStore* artifacts, Metrics* metrics, ResultAcceptor acceptor, SchedulerConfig config = {},
       Log log = NoLog(), SteadyClock clock = SteadyNow, Threads* threads = SystemThreads());
  ~Farm();

  // Restores the store's last fence and its unfinished tasks. Call it before Start: without it, fences of new leases
  // might be those of old ones.
  absl::Status Restore();
  // Called on the pump thread, several times a second, with whether the state of tasks can be stored. Call it before
  // Start.
  void SetObserver(std::function<void(const absl::Status& stored)> observer) { observer_ = std::move(observer); }
  void Start();
  // Answers all polls with "idle" (a running task goes on), and fails all waits with UNAVAILABLE. Their tasks stay
  // unchanged for the next start. Idempotent.
  void Stop();

  // For workers. Call Register before a worker's first Poll, and again when the worker's description changes. Fails
  // with PERMISSION_DENIED for an id that a worker with another token has.
  absl::Status Register(AttachedWorker worker);
  // Returns whether the worker is attached with exactly this serialised WorkerInfo and this token.
  bool IsRegistered(const std::string& worker_id, const std::string& info, const std::string& token) const;
  // May block on the disk for a result, so it must not be called on a thread of gRPC.
  void Poll(FarmPoll poll);
  // The caller of the poll with this `gone` hung up. The worker counts as disconnected unless it has called again
  // since.
  void HungUp(const std::string& worker_id, const std::shared_ptr<std::atomic<bool>>& gone);

  // The job for whose sake the worker holds this lease; "" if it does not, or if the job is unknown.
  std::string JobOf(const std::string& worker_id, const std::string& task_id, int64_t fence) const;

  // Says whose a job is and how urgent, while it runs: by that its tasks take their turns (task_queue.h). SetJob may be
  // called again.
  void SetJob(const std::string& job, std::vector<std::string> owners, int priority);
  void ForgetJob(const std::string& job);
  // For the compiler. Blocks until each task has an outcome (parallel to `tasks`). Fails with CANCELLED, or with
  // UNAVAILABLE at shutdown.
  absl::StatusOr<std::vector<FarmOutcome>> RunAll(absl::Span<const FarmTask> tasks, const FarmWait& wait);

  // A measurement asks this of workers beside the times, so that the judge can tell lies (judge.h). Nothing where all
  // workers that could do it are believed.
  struct Checks {
    bool canaries = false;
    std::string sentinel;  // a bundle; "": there is none yet
  };
  Checks ChecksFor(const std::string& requirement, int threads) const;

  // Rises whenever a worker comes, comes back, may have tasks again or describes itself anew: until then what nobody
  // offered or fitted, nobody does.
  int64_t Arrivals() const;

  // The source of a worker's measurements; "" where it is believed, or was never attached since the start.
  std::string SourceOfWorker(const std::string& worker_id) const;

  // Imported rows are measured again by a worker of their device, where there is one, until their source is believed or
  // in quarantine (judge.h). KnowImports looks for sources that an import has brought. `by` vouches for those of
  // `believed` that are not in quarantine, which the audit says.
  absl::Status KnowImports(const std::set<std::string>& believed = {}, const std::string& by = "");
  std::set<std::string> DoubtedImports() const;
  // Those of them whose rows a worker can measure again; none where nobody offers the requirement.
  std::set<std::string> ImportsToCheck(const std::string& requirement) const;
  int ConfirmedInARow(const std::string& source) const;
  // `is_firm`: what was measured may contradict another source. A busy machine looks like wrong rows, so that the
  // differences of a source that count are this far apart. Blocks on the disk where the source is quarantined by it.
  static constexpr absl::Duration kBetweenDifferences = absl::Minutes(10);
  void CompareImport(const std::string& source, const std::string& description, double imported, double measured,
                     double tolerance, bool is_firm);

  // Counts attached workers, idle or not.
  int WorkersThatOffer(const std::string& requirement) const;
  // The attached builders for that kind, each once, trusted ones first, and otherwise in the order of their tokens.
  std::vector<FarmBuilder> Builders(const std::string& kind) const;
  // Waits for a builder for that kind that `fits`; `why` no other does, in words. Nothing where none comes in time, and
  // where the wait is cancelled or given up.
  std::optional<FarmBuilder> AwaitBuilder(const std::string& kind, const std::function<bool(const FarmBuilder&)>& fits,
                                          const std::string& why, const FarmWait& wait) const;
  // Is what a wait lacked there now?
  bool Has(const FarmLack& lack) const;
  // A line of the server's log.
  void Say(const LogLine& line) const { log_(line); }
  // Returns an attached worker, with its device model, that fits the wish. Among several devices it is the one with
  // most workers, then the first by name and fingerprint: the ids that workers draw at random decide nothing.
  std::optional<AttachedWorker> FindDevice(const DeviceWish& wish) const;
  // Returns the names of the other attached devices that would do, each once.
  std::vector<std::string> OtherDevices(const DeviceWish& wish, const std::string& fingerprint) const;
  // Waits for such a worker until `timeout`.
  std::optional<AttachedWorker> AwaitDevice(const DeviceWish& wish, absl::Duration timeout,
                                            const std::function<bool()>& cancelled = nullptr) const;
  // Jobs wait for a device of that kind without AwaitDevice: so many more, or fewer. For the metrics.
  void CountAwaited(const std::string& kind, int change) const;
  // Returns "cpu", "cuda" and so on; "none" if no worker measures anything. Workers that an operator has drained are
  // named behind that.
  std::string AttachedKinds() const;
  struct WorkerStatusRow {
    AttachedWorker worker;
    WorkerView view;
    bool live = false;
    std::string task_description;
    absl::Time last_seen;  // by the wall clock
    std::string trust;     // whether its measurements are believed, in words
  };
  std::vector<WorkerStatusRow> WorkerStatuses() const;

  // Operators. The attached workers with that name, and those that attach under it later, get no new tasks within the
  // window, or until they are released. Drain fails with NOT_FOUND if none is attached, Release if that name was not
  // drained, INVALID_ARGUMENT for a window that is over. The farm itself drains a worker that fails task after task
  // that others then do.
  absl::Status Drain(const DrainedWorkerRow& worker);
  // Quarantine also takes the measurements of the source from before, up to the last that another one confirmed, out of
  // use, and Release gives them back. Both take the name of an attached worker for its source. Quarantine fails with
  // FAILED_PRECONDITION for a worker that is believed, and Drain for one in quarantine. The farm itself quarantines
  // sources that the judge catches.
  absl::StatusOr<DrainedWorkerRow> Quarantine(DrainedWorkerRow worker) {
    return Quarantine(std::move(worker), "operator");
  }
  absl::StatusOr<DrainedWorkerRow> Release(const std::string& name);
  std::vector<DrainedWorkerRow> Drained() const;  // and quarantined; by name; also those whose window is to come
  // The clock by which windows begin and end. For tests; before Start.
  void SetWallClock(std::function<absl::Time()> clock) { wall_clock_ = std::move(clock); }
  // How the judge draws (judge.h). For tests; before Start.
  void SetLot(std::function<bool()> draw) { draw_ = std::move(draw); }

 private:
  struct HeldPoll {
    FarmPoll poll;
    absl::Time until;
    bool renewed = false;    // a heartbeat whose lease goes on
    bool looked_at = false;  // by an earlier round
  };
  void Pump();
  // Runs one round: time, assignments, storing, answers. Nobody may see any effect of a round until its rows are on
  // disk.
  void PumpOnce();
  // The decisions of a round, before anybody sees any of them.
  struct Round {
    std::vector<std::pair<std::function<void(const FarmAnswer&)>, FarmAnswer>> answers;
    std::vector<TaskRow> rows;                                          // that changed
    std::vector<TaskCall> calls;                                        // by which the store follows
    std::map<std::string, std::shared_ptr<const std::string>> results;  // of rows that are done, by id
    std::vector<LogLine> leased;
    std::vector<DueQuarantine> quarantines;
    bool stopping = false;
    std::set<std::string> suspects;         // names of workers that are to be drained
    std::vector<std::string> windows_over;  // names of workers that are drained no longer
    int failures_of_a_suspect = 0;
  };
  Round Decide();
  // Answers the polls that need not wait on, and takes them out of the list.
  void AnswerPolls(absl::Time now, std::list<HeldPoll>* polls, Round* round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns nothing where the poll waits on.
  std::optional<FarmAnswer> AnswerTo(const HeldPoll& held, absl::Time now, Round* round)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the calls until they are stored, or until the farm stops.
  absl::Status StoreRound(Round* round);
  // The answers of the store to the round's calls. Only where another server has the same store they change the round.
  void TakeAnswers(const std::vector<TaskAnswer>& answers, Round* round);
  void Publish(const absl::Status& saved, Round* round);
  // The content of a finished poll: rows, or the error of the attempt.
  struct Delivery;
  Delivery TakeResult(const FarmPoll& poll);
  // Does what the judge says about it. Returns whether the worker held the lease; `line` gets what is to be said.
  bool FollowJudge(FarmPoll* poll, Delivery* delivery, const TaskRow& task, absl::Time now, LogLine* line)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const std::string& task_id, std::vector<Opinion> opinions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends tasks for which nobody is left that could give a second opinion.
  void SettleStranded(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<DrainedWorkerRow> Quarantine(DrainedWorkerRow worker, const std::string& cause);
  absl::Status QuarantineDue(const DueQuarantine& due);
  // Records it. Returns a line for the log.
  std::optional<LogLine> EndLease(FarmPoll* poll, Delivery delivery, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The steps of RunAll.
  struct Batch;
  absl::Status AddTasks(Batch* batch);
  // Makes the payload `digest`, which was just put, that of the task if the task takes one. Drops the one that is not
  // its payload afterwards.
  void OfferPayload(const std::string& task_id, const std::string& digest, int64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes again what the disk has lost.
  absl::Status MendPayloads(const Batch& batch);
  // Waits until each task has a final row, or until nobody could do one for too long. Fails with CANCELLED, or with
  // UNAVAILABLE at shutdown.
  absl::Status AwaitFinals(const FarmWait& wait, Batch* batch);
  // Takes the final rows that are stored by now. Returns whether a worker offers each of the other tasks.
  bool TakeFinals(absl::Time now, Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseTasks(const Batch& batch);
  // A task that is stored as final. Several batches may wait for one task, and share its result.
  struct Final {
    TaskRow row;
    std::shared_ptr<const std::string> result;  // null unless it is done
  };
  static FarmOutcome OutcomeOf(const FarmTask& task, const Final& final);
  void UpdateMetrics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<FarmBuilder> BuildersLocked(const std::string& kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `workers`: by kind and state; `waiting`: tasks and jobs by kind.
  void ReportKinds(std::map<std::pair<std::string, std::string>, int> workers, std::map<std::string, int> waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Workers that fit the wish, by the fingerprint of their device.
  std::map<std::string, std::vector<const AttachedWorker*>> DevicesLocked(const DeviceWish& wish) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<AttachedWorker> FindDeviceLocked(const DeviceWish& wish) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets windows begin and end.
  void LookAtWindows(Round* round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Acts on what the round found out about workers, outside the lock.
  void DrainSuspects(const Round& round);
  bool IsDrained(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // By its name or its source.
  bool IsKeptFromTasks(const AttachedWorker& worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return IsDrained(worker.name) || (!worker.source.empty() && IsDrained(worker.source));
  }
  bool IsQuarantined(const std::string& source) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The source of an attached worker with that name; else the name.
  std::string SourceOf(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes on to the scheduler whether the workers with that name are drained.
  void ApplyDrain(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string AttachedKindsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Compares the rates of a worker that attaches with those of the others with its device (device_rates.h).
  void CompareRates(const AttachedWorker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store* const store_;
  ArtifactStore* const artifacts_;
  Metrics* const metrics_;
  const ResultAcceptor acceptor_;
  const Log log_;
  const SteadyClock clock_;
  Threads* const threads_;
  std::function<void(const absl::Status&)> observer_;

  mutable absl::Mutex mutex_;
  mutable SteadyCondVar changed_;  // outcomes and workers
  SteadyCondVar pump_wanted_;
  bool pump_pending_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool pump_ended_ ABSL_GUARDED_BY(mutex_) = false;
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  StoredTasks stored_ ABSL_GUARDED_BY(mutex_);
  std::function<bool()> draw_;
  mutable Judge judge_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, AttachedWorker> attached_ ABSL_GUARDED_BY(mutex_);
  std::list<HeldPoll> polls_ ABSL_GUARDED_BY(mutex_);  // that came since the last round
  // Those that wait on. A thousand idle workers have one each, so that a round looks at them only if it might answer
  // one.
  std::list<HeldPoll> held_ ABSL_GUARDED_BY(mutex_);
  bool hung_up_ ABSL_GUARDED_BY(mutex_) = false;  // one of them has a caller that is gone
  absl::Time held_looked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::map<std::string, std::string> rates_differ_ ABSL_GUARDED_BY(mutex_);  // in words, by worker
  std::map<std::string, absl::Time> differed_at_ ABSL_GUARDED_BY(mutex_);    // what counted, by source of imports
  std::map<std::string, std::shared_ptr<std::atomic<bool>>> latest_call_ ABSL_GUARDED_BY(mutex_);  // by worker
  absl::Time last_tick_ ABSL_GUARDED_BY(mutex_);
  mutable std::map<std::string, int> awaited_ ABSL_GUARDED_BY(mutex_);  // jobs that wait for a device, by kind
  std::map<std::string, Final> durable_ ABSL_GUARDED_BY(mutex_);        // by task id
  std::map<std::string, std::string> payload_of_
      ABSL_GUARDED_BY(mutex_);  // digests, by the id of a task that is not final
  // These belong to tasks that are done and not stored yet.
  std::map<std::string, AcceptedRows> accepted_ ABSL_GUARDED_BY(mutex_);                       // by task id
  std::map<std::string, std::shared_ptr<const std::string>> results_ ABSL_GUARDED_BY(mutex_);  // by task id
  SchedulerCounts reported_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, DrainedWorkerRow> drained_ ABSL_GUARDED_BY(mutex_);  // by name
  std::set<std::string> applied_drains_ ABSL_GUARDED_BY(mutex_);             // those that hold now
  // The pump's, of the latest round. A farm that stops may leave a round unstored: the store then lacks what later
  // rounds begin with, so that none of them is stored.
  absl::Status saved_;
  std::function<absl::Time()> wall_clock_ = absl::Now;
  std::set<std::string> reported_kinds_ ABSL_GUARDED_BY(mutex_);
  // As the metrics have them.
  std::map<std::pair<std::string, std::string>, int> reported_workers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> reported_waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Time gauges_set_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time disk_looked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::unique_ptr<Threads::Thread> thread_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_FARM_H_
