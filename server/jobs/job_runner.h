// JobRunner: takes submissions, runs compilations on its own threads, and stores their rows and events.
//
// A submission is answered only after the job has a row. Identical submissions in flight share one job, under
// an id each, and the job ends early only when all are cancelled; a submission that was compiled before is answered
// from the results table. Stop() leaves unfinished jobs to the next start.
//
// A job is claimed before it is compiled (db/stores/job_claims.h), and the claim is renewed while it is. Where several
// processes have one database each job is therefore compiled by one of them; a job whose claimant is gone for a lease
// is taken over, and a result that comes after that is dropped.
//
// After a crash, unfinished jobs start again. A job whose compilation dies (compile_process.h) is tried once more and
// then fails with the evidence; that the server died counts for no job
// (docs/decisions/0047-a-compilation-is-a-process.md).
//
// Owners take turns, those who share a job equal parts of one, priorities order the jobs of one (task_queue.h), and
// each has at most `max_in_flight` jobs, of which a job that he has joined is none. A job that waits for a place longer
// than its submission allows fails with DEADLINE_EXCEEDED. Jobs for a device that is not there are parked
// (parked_jobs.cc): they hold no thread, however many there are, and go back to their place in the queue when the
// device comes. Jobs that have begun and wait for a worker take none of the `compile_threads` places; those beyond
// `max_away`, and each that waits for long, end their compilation and are parked, too, until the worker is there.
//
// The class lies in five files: job_runner.cc (queue, attempts, ends), claims.cc, parked_jobs.cc, submissions.cc and
// perform_job.cc.
#ifndef FUSION_SERVER_JOBS_JOB_RUNNER_H_
#define FUSION_SERVER_JOBS_JOB_RUNNER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/pipeline/compile.h"
#include "proto/compile.pb.h"
#include "runtime/base/steady_clock.h"
#include "runtime/log/log.h"
#include "server/artifacts/artifact_store.h"
#include "server/jobs/event_hub.h"
#include "server/jobs/stage_timer.h"
#include "server/scheduler/awake_time.h"
#include "server/scheduler/device_wish.h"
#include "server/scheduler/farm_tasks.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/scheduler/task_queue.h"
#include "server/scheduler/threads.h"

namespace fusion {

class JobLogs;

// CompileInProcess and PlanInProcess, or a test's replacements. A status that HowTheProcessEnded recognises is an
// attempt of the job.
struct CompilerFunctions {
  std::function<absl::StatusOr<CompileAccount>(const ModelFiles&, const CompileOptions&, const CompileContext&,
                                               const std::string& bundle_path)>
      compile;
  std::function<absl::StatusOr<PlanReport>(const ModelFiles&, const CompileOptions&, const CompileContext&)> plan;
  std::vector<std::string> planners;  // names that CompileOptions::planner may take
  std::function<absl::Status(const std::string& id)>
      check_rule;  // NOT_FOUND for an id that disabled_rules may not name
};

struct JobRunnerOptions {
  std::string work_folder;  // emptied at start; on the artifact store's file system
  int compile_threads = 2;
  // After the server's start, a submission waits this long for the first worker before its target is judged.
  absl::Duration first_worker_grace = absl::Seconds(5);
  // Returns whether a worker for this kind of device may attach soon, because fusiond is looking for the device or is
  // starting its worker. A submission for that kind then keeps waiting. Must be thread-safe; may be empty.
  std::function<bool(const std::string& kind)> is_expected;
  Log log = NoLog();         // every line about a job has its id in the field "job"
  int max_attempts = 2;      // compilations of a job that die
  int max_in_flight = 1000;  // jobs of one owner that wait or run
  JobLogs* logs = nullptr;   // what is said about each job; null: it is not kept
  // Fails with RESOURCE_EXHAUSTED if the disk is too full for another job. May be empty.
  std::function<absl::Status()> room = {};
  // Jobs that have begun and may wait for a worker beside those that compile, for so long. Each holds a thread and its
  // compilation's process; the others begin again when there is a worker, which repeats what neither database nor
  // artifacts keep.
  int max_away = 4;
  absl::Duration longest_away = absl::Minutes(1);
  SteadyClock clock = SteadyNow;
  Threads* threads = SystemThreads();
  // No other process has the database, so that all claims that are there at the start are those of the dead.
  bool alone = true;
  absl::Duration lease = absl::Seconds(30);  // of a job; it is renewed three times within
};

class JobRunner {
 public:
  JobRunner(JobRunnerOptions options, CompilerFunctions compiler, Store* store, ArtifactStore* artifacts, Farm* farm,
            Metrics* metrics);
  ~JobRunner();

  const std::vector<std::string>& planners() const { return compiler_.planners; }

  // Queues the store's unfinished jobs, and ends those that have had all their attempts. Call it once, before anybody
  // can submit.
  absl::Status Restore();
  // Starts the threads.
  void Start();
  // Accepts no new jobs, and lets compilations end without changing their rows. Compilations may be waiting for the
  // farm, so the caller stops the farm next; then Stop joins the threads. Both are idempotent.
  void BeginStop();
  void Stop();

  // `owner`: the caller's name. Fails with RESOURCE_EXHAUSTED if too many jobs of his are in flight.
  // A request id that `owner` has used before returns that submission again.
  absl::StatusOr<v1::SubmitResponse> Submit(v1::SubmitRequest request, const std::string& owner,
                                            const std::function<bool()>& hung_up);
  absl::StatusOr<v1::PlanResponse> Plan(const v1::SubmitRequest& request, const std::function<bool()>& hung_up);
  // Takes a submission out of its job, which is cancelled if no other submission is left; its compilation ends a little
  // later. Returns the submission's view of the job afterwards. A final job does not change.
  absl::StatusOr<JobRow> Cancel(const std::string& submission_id);
  EventHub& hub() { return hub_; }
  const ProfileSources& sources() const { return sources_; }

 private:
  struct Checked {
    CompileOptions options;
    AttachedWorker device;  // without a fingerprint: the device is not known yet
  };
  // The answer to a submission that was made before.
  absl::StatusOr<v1::SubmitResponse> AnswerAgain(const std::string& owner, const std::string& request_id);
  absl::StatusOr<Checked> Check(const v1::SubmitRequest& request, const std::function<bool()>& hung_up);
  // Returns an attached worker, else the worker of that kind that the store saw last, else a device whose model is
  // stored, that fits the wish.
  absl::StatusOr<std::optional<AttachedWorker>> KnownDevice(const DeviceWish& wish);
  // Returns the stored result with that key, unless its bundle is gone, or was planned by estimates only although a
  // worker that measures is attached now.
  absl::StatusOr<std::optional<ResultRow>> UsableResult(const std::string& key, const AttachedWorker& device) const;
  bool IsAttached(const AttachedWorker& device) const;
  // Waits for a worker of the device as long as the server's own workers may still attach.
  void AwaitFirstWorker(const DeviceWish& wish, const std::function<bool()>& cancelled) const;
  // Replaces the device's rates with those that the profile database holds for this kind of device.
  absl::Status TakeProfiledRates(DeviceModel* device);
  absl::Status GiveUp(const JobRow& job);
  // The error of a job whose compilation died `attempts` times.
  static absl::Status DiedError(const JobRow& job, int attempts, const std::string& evidence);
  // The owners whose turn a job is, and how urgent it is.
  struct Turn {
    std::vector<std::string> owners;
    int priority = 0;
  };
  // A job that has left the queue.
  struct RunningJob {
    std::atomic<bool> cancelled{false};  // by the user
    std::atomic<bool> lost{false};       // another process has claimed it
    std::atomic<bool> gives_up{false};   // its place, until a worker is there that it needs
    bool began_before = false;
    std::map<std::string, absl::Duration> waited;  // FarmWait::waited
    // Under the runner's mutex:
    bool away = false;
    std::optional<FarmLack> lack;  // for which it gives up
    std::string after;             // or until this job has ended; neither: a device
    std::optional<Turn> turn;      // its own
    std::optional<JobClaim> claim;
  };
  void Loop();
  // Returns false if the job has given its place up, and is queued again.
  bool Run(const std::string& job_id, const std::shared_ptr<RunningJob>& running);
  void QueueAgain(const JobRow& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Renews the claims of what runs, and takes over what others have left.
  void ClaimsLoop();
  void RenewClaims();
  void TakeOverLapsed();
  // Counts a submission as one of its owner's jobs in flight before anything else is known of it, so that many at a
  // time cannot all pass.
  absl::Status CountIn(const std::string& owner);
  // Lines about the job are kept from now on, and until its end.
  void BeginLog(const std::string& job_id, const std::string& trace);
  void EndLog(const std::string& job_id);
  // `told`: its last event says whether there is a device for it.
  void Enqueue(const JobRow& job, bool told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a job that waits out of the queue, or from where it is parked. Returns whose it is; nothing if it does not
  // wait.
  std::optional<std::string> Dequeue(const std::string& job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes on whose a job is and its priority, wherever its turn is waited for.
  void SetPriority(const JobRow& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The turn of a job with those of the jobs that are parked until it has ended: their owners share it, and the most
  // urgent counts.
  Turn WithLent(const std::string& job_id, Turn turn) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the queue, or the farm, the turn of a job. Does nothing for a job that is neither in the queue nor running.
  void PassTurnOn(const std::string& job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One more submission waits for the job.
  void Join(const std::string& job_id, const v1::SubmitRequest& request);
  // A job that waits for a place, or for a device.
  struct WaitingJob {
    std::string owner;  // of its first submission
    Turn turn;
    int64_t order = 0;
    bool told = false;
    DeviceWish wish;
    absl::Duration for_place, for_device;  // how long it may wait
    absl::Time until;                      // then it has waited too long; of a parked one, by parked_time_
    // The rest is about a job that had begun.
    bool began = false;
    std::optional<FarmLack> lack = {};                  // what it waits for instead of the device, or
    std::string after = {};                             // until this job has ended
    std::map<std::string, absl::Duration> waited = {};  // FarmWait::waited

    std::string KindOfDevice() const;
  };
  // One of these.
  struct ParkedFor {
    DeviceWish wish = {};
    std::optional<FarmLack> lack = {};
    std::string after = {};
    bool operator<(const ParkedFor& other) const {
      return std::tie(wish, lack, after) < std::tie(other.wish, other.lack, other.after);
    }
  };
  static ParkedFor WhatFor(const WaitingJob& waiting);
  bool IsThere(const ParkedFor& what);
  // Parks a job that has left the queue if no device is known that it could be for. Returns whether it did.
  bool Park(const std::string& job_id, WaitingJob waiting, const RunningJob& running);
  // Parks a job that has given its place up. Returns false where it is nobody's any more.
  bool ParkAgain(const std::string& job_id, WaitingJob waiting, const RunningJob& running);
  void PutAside(const std::string& job_id, WaitingJob waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes parked jobs back into the queue when a worker with a device for them attaches.
  void ParkedLoop();
  void Unpark(const ParkedFor& what);
  void PutBack(const std::string& job_id, WaitingJob waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutIntoQueue(const std::string& job_id, WaitingJob waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NoDeviceInWords(const DeviceWish& wish) const;
  // Ends the jobs that have waited for a place, or for a device, longer than they may.
  struct ExpiredJob {
    std::string id;
    WaitingJob waiting;
    bool parked = false;
  };
  void ExpireLoop();
  void Expire(const ExpiredJob& expired);
  std::vector<ExpiredJob> TakeExpired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<ExpiredJob> TakeExpiredParked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountOut(const std::string& owner) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasPlace() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives up the place of a running job while it waits for a worker that is not there, and waits for one afterwards.
  void Away(RunningJob& running, bool away);
  // Whether a job that waits for a worker shall give its place up, and from then on it does.
  bool GivesUp(RunningJob& running, const FarmLack& lack);
  // It gives its place up until that job has ended; "": until its device is there.
  void GiveUpFor(RunningJob& running, const std::string& after);
  // Queues a job again that has given its place up. Returns false where it has ended, or is another's.
  bool Release(const JobRow& job, const std::string& words);
  // Claims the job, and returns it; nothing if it has ended, if another process has it, or at a stop. A store that
  // fails is asked again until it answers: a job that was given up here would wait for the next start of the server.
  std::optional<JobRow> Begin(const std::string& job_id);
  // Finish, again until the end is stored or the server stops, because watchers wait for it.
  void End(const JobRow& job, absl::Status outcome, const v1::Checks& checks, const std::optional<ResultRow>& result);
  // The questions and news of a running job.
  struct Hooks {
    std::function<bool()> cancelled;          // by the user or by a shutdown
    std::function<bool()> cancelled_by_user;  // what the farm asks: it ends its waits at a shutdown itself
    std::function<void(const ProgressEvent&)> progress;
    std::function<void(bool away)> away;  // begins and ends a wait for a worker that is not there
    std::function<bool(const FarmLack&)> gives_up;
    std::function<void(const std::string& after)> gives_up_for;  // from then on the job is cancelled
    std::map<std::string, absl::Duration> waited;
  };
  // Perform, and again if the compilation dies and may be tried again.
  absl::StatusOr<ResultRow> PerformWithAttempts(JobRow* job, const v1::SubmitRequest& request,
                                                const std::string& folder, const Hooks& hooks, v1::Checks* checks);
  // Compiles unless the store has the bundle, and checks it. `checks` are for the job, those of the result last.
  absl::StatusOr<ResultRow> Perform(JobRow* job, const v1::SubmitRequest& request, const std::string& folder,
                                    const Hooks& hooks, v1::Checks* checks);
  // A job that was submitted before its device was known gets the key of those that are submitted now. Fails with
  // CANCELLED where another job in flight has that key: this one goes on when that has ended, from its result.
  absl::Status TakeKey(const std::string& key, const v1::SubmitRequest& request, const CompileOptions& options,
                       const Hooks& hooks, JobRow* job);
  absl::StatusOr<AttachedWorker> DeviceFor(const v1::SubmitRequest& request, const std::string& target,
                                           const Hooks& hooks);
  absl::StatusOr<ResultRow> Compile(const ModelFiles& files, const CompileOptions& options, const FarmJob& farm_job,
                                    const std::string& key, const std::string& folder, const Hooks& hooks);
  // Compiles the unfused form, unless the store has it, and offers it while the job goes on. Fails only where the job
  // ends: what else prevents it is an event.
  absl::Status OfferEarlyBundle(const FarmJob& farm_job, const v1::SubmitRequest& request, const ModelFiles& files,
                                const CompileOptions& options, const std::string& folder, const Hooks& hooks);
  absl::Status Finish(JobRow job, const absl::Status& outcome, const v1::Checks& checks,
                      const std::optional<ResultRow>& result);
  void LogStage(const std::string& job_id, const std::optional<StageTimer::Ended>& ended) const;
  // The claim on a job that runs here; nobody's for another one.
  JobClaim ClaimOf(const std::string& job_id);
  void AppendEvent(const std::string& job_id, const ProgressEvent& event, v1::JobState state);
  FarmJob MakeFarmJob(const std::string& job_id, const AttachedWorker& device, const CompileOptions& options,
                      const v1::SubmitRequest& request);

  const JobRunnerOptions options_;
  const CompilerFunctions compiler_;
  Store* const store_;
  ArtifactStore* const artifacts_;
  Farm* const farm_;
  Metrics* const metrics_;
  const absl::Time started_;
  const std::string claimant_;
  EventHub hub_;
  ProfileSources sources_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> plans_running_{0}, jobs_running_{0};

  absl::Mutex mutex_;
  std::map<std::string, WaitingJob> waiting_ ABSL_GUARDED_BY(mutex_);              // for a place
  TaskQueue queue_ ABSL_GUARDED_BY(mutex_);                                        // each of them is a task of its own
  std::map<std::string, WaitingJob> parked_ ABSL_GUARDED_BY(mutex_);               // for a device
  std::map<ParkedFor, std::set<std::string>> parked_for_ ABSL_GUARDED_BY(mutex_);  // the ids of parked_
  AwakeTime parked_time_ ABSL_GUARDED_BY(mutex_);
  // When the farm was asked for their devices, and which arrivals it had had by then; -1: it is to be asked again.
  absl::Time asked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t arrivals_seen_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_parked_expiry_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  int64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> in_flight_ ABSL_GUARDED_BY(mutex_);  // jobs that arrive, wait or run, by owner
  std::map<std::string, std::shared_ptr<RunningJob>> running_ ABSL_GUARDED_BY(mutex_);
  int places_taken_ ABSL_GUARDED_BY(mutex_) = 0;
  int away_ ABSL_GUARDED_BY(mutex_) = 0;  // jobs that wait for a worker and do not give up
  std::vector<std::unique_ptr<Threads::Thread>> threads_;
  absl::Time next_expiry_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // for which ExpireLoop waits
  SteadyCondVar expiry_changed_, claims_wanted_, parked_changed_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_JOB_RUNNER_H_
