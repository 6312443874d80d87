// Store: everything that the server remembers, as typed operations. A call that writes returns when the change is
// durable. All calls are thread-safe. One conformance suite (store_conformance_test.h) runs over every implementation.
#ifndef FUSION_DB_STORES_STORE_H_
#define FUSION_DB_STORES_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "db/stores/rows.h"
#include "db/stores/task_calls.h"
#include "runtime/base/steady_clock.h"

namespace fusion {

class Store {
 public:
  virtual ~Store() = default;

  // Jobs. If a job with the same key is in flight, InsertJob adds `job` as a submission that joins it, and returns the
  // id of the job in flight; else `job.id`.
  // The store assigns an event's seq, from 1 without gaps. Fails with ALREADY_EXISTS if the owner has a submission with
  // that request id.
  virtual absl::StatusOr<std::string> InsertJob(const JobRow& job, const std::string& first_event) = 0;

  // Claims. Each call is one transaction, and does what JobClaims says (job_claims.h). A claim that does not hold is
  // refused with FAILED_PRECONDITION, unless something else is said.
  //
  // ClaimJob returns the job as the caller has it from now on: it runs. Nothing for a job that is final or unknown, or
  // that another claimant holds.
  virtual absl::StatusOr<std::optional<JobRow>> ClaimJob(const std::string& id, const std::string& claimant,
                                                         absl::Duration lease, int64_t now_ms) = 0;
  // Returns parallel to the claims whether each holds.
  virtual absl::StatusOr<std::vector<bool>> RenewJobs(absl::Span<const JobClaim> claims, absl::Duration lease) = 0;
  // One more compilation died; `event` says how. The claim goes on.
  virtual absl::Status FailJobAttempt(const JobClaim& claim, const std::string& event) = 0;
  // Gives a job another key, unless a job in flight has it. Returns the id of the one that has it then.
  virtual absl::StatusOr<std::string> GiveJobKey(const JobClaim& claim, const std::string& key) = 0;
  // The job is queued again; `event` says why.
  virtual absl::Status ReleaseJob(const JobClaim& claim, const std::string& event) = 0;
  // The same for all jobs that run, for a caller who knows that no other process has this database.
  virtual absl::Status ReleaseAllJobs(const std::string& event) = 0;
  // Completes or fails a job, as its row says. The row is that of its claimant, or of a job that nobody holds. `result`
  // is also stored in the results table.
  virtual absl::Status FinishJob(const JobRow& job, const std::string& last_event,
                                 const std::optional<ResultRow>& result) = 0;
  // The jobs that others hold whose leases are over.
  virtual absl::StatusOr<std::vector<JobRow>> LapsedJobs(const std::string& claimant) = 0;

  // For a job that runs, by its claimant; or for one that nobody holds.
  virtual absl::Status AppendJobEvent(const JobClaim& claim, const std::string& event) = 0;
  // The job offers the bundle of `early`, which is also stored in the results table; `event` says so. For a claimant.
  virtual absl::Status OfferEarlyBundle(const JobClaim& claim, const ResultRow& early, const std::string& event) = 0;
  virtual absl::StatusOr<JobRow> GetJob(const std::string& id) = 0;  // NOT_FOUND
  // The job as one who submitted it sees it, by the id of any of its submissions: under that id, and cancelled if that
  // submission has left. NOT_FOUND.
  virtual absl::StatusOr<JobRow> FindSubmission(const std::string& id) = 0;
  // The submission with that request id, as FindSubmission sees it. NOT_FOUND.
  virtual absl::StatusOr<JobRow> FindRequest(const std::string& owner, const std::string& request_id) = 0;
  // Takes a submission out of its job. If it was the last one, `cancelled` becomes the job's last event, and the job is
  // cancelled with that error.
  struct Leaving {
    bool left = false;   // false: the job is final, or the submission had left before
    bool ended = false;  // the job is cancelled
  };
  virtual absl::StatusOr<Leaving> LeaveJob(const std::string& submission_id, int64_t now_ms,
                                           const std::string& cancelled, int error_code,
                                           const std::string& error_message) = 0;
  // Keeps the job of a submission, with what it names, or does so no longer. NOT_FOUND.
  virtual absl::Status PinJob(const std::string& submission_id, bool pinned) = 0;
  // Submissions, the newest first; of that owner, or of all without one.
  // Rows that come meanwhile are on no later page.
  virtual absl::StatusOr<JobPage> PageOfJobs(int limit, const std::optional<std::string>& owner,
                                             const JobCursor& cursor) = 0;
  absl::StatusOr<std::vector<JobRow>> ListJobs(int limit, const std::optional<std::string>& owner) {
    absl::StatusOr<JobPage> page = PageOfJobs(limit, owner, JobCursor());
    if (!page.ok()) return page.status();
    return std::move(page->jobs);
  }
  virtual absl::StatusOr<std::vector<JobRow>> UnfinishedJobs() = 0;  // oldest first
  virtual absl::StatusOr<std::vector<JobEventRow>> JobEvents(const std::string& id, int64_t after_seq, int limit) = 0;
  virtual absl::StatusOr<std::optional<ResultRow>> FindResult(const std::string& key) = 0;
  virtual absl::Status PutResult(const ResultRow& result) = 0;  // replaces the row with that key

  // Tasks, one row per key. CallTasks makes the calls in their order, each as TaskClaims says (task_claims.h), all in
  // one transaction, so that calls about many tasks wait for the disk once. Answers parallel to the calls. Fails with
  // INVALID_ARGUMENT for a call that makes no sense (CheckCall), and then does nothing. `now_ms` dates the rows.
  virtual absl::StatusOr<std::vector<TaskAnswer>> CallTasks(absl::Span<const TaskCall> calls, int64_t now_ms) = 0;
  virtual absl::StatusOr<std::optional<TaskRow>> FindTask(const std::string& key) = 0;
  // In the order in which they were queued.
  virtual absl::StatusOr<std::vector<TaskRow>> UnfinishedTasks() = 0;
  // The largest fence that any task ever had, whether or not it still has a row. 0: none had one.
  virtual absl::StatusOr<int64_t> LastFence() = 0;

  // The sources of measurements, by name, and what is known of them. A source that is put into quarantine, or released, is unknown.
  virtual absl::StatusOr<std::vector<SourceRow>> Sources() = 0;

  // Builds: the rows of each unit, by its key; by toolchain and builder.
  virtual absl::StatusOr<std::vector<std::vector<BuildRow>>> FindBuilds(absl::Span<const std::string> keys) = 0;

  // Workers.
  // Also adds its device, if that is unknown and the worker's source is not in quarantine. The rates of a worker that
  // is believed take the place of those of a source.
  virtual absl::Status PutWorker(const WorkerRow& worker) = 0;
  virtual absl::StatusOr<std::optional<WorkerRow>> FindWorker(const std::string& id) = 0;
  // Returns the worker with that device kind that was seen last, attached or not.
  virtual absl::StatusOr<std::optional<WorkerRow>> LatestWorker(const std::string& device_kind) = 0;

  // Replaces the row with that name. If the row says quarantine, its measurements and comparisons of plans with that
  // source no longer count, unless a row that another worker confirmed has the same or a later fence; nor do those that
  // come later, and imported ones of any fence. A device whose rates are that source's has those of another worker of
  // the device from then on, else it is unknown.
  virtual absl::Status PutDrainedWorker(const DrainedWorkerRow& worker) = 0;
  // The rows of that source count again.
  virtual absl::Status RemoveDrainedWorker(const std::string& name) = 0;
  virtual absl::StatusOr<std::vector<DrainedWorkerRow>> DrainedWorkers() = 0;  // by name

  // Profile. Quarantined rows answer no question; ScanMeasurements shows them. MergeMeasurements appends the rows that
  // are missing, and returns how many it appended; rows with the same question, worker, time and samples are the same
  // measurement. The sources of imported rows are known from then on (Sources). MedianLatencies answers parallel to the
  // keys: the median of the rows' medians (the larger middle one of an even number), or nullopt without rows.
  virtual absl::StatusOr<int64_t> MergeMeasurements(absl::Span<const MeasurementRow> rows) = 0;
  virtual absl::StatusOr<std::vector<std::optional<double>>> MedianLatencies(absl::Span<const std::string> keys) = 0;
  // Parallel to the keys.
  virtual absl::StatusOr<std::vector<ImportedLatency>> ImportedLatencies(absl::Span<const std::string> keys) = 0;
  virtual absl::Status ScanMeasurements(const MeasurementFilter& filter,
                                        const std::function<void(const MeasurementRow&)>& on_row) = 0;
  virtual absl::StatusOr<ProfileCounts> CountMeasurements() = 0;
  // The first worker with a fingerprint provides the device's model. Stores `device` if the fingerprint is new, or if
  // more measurements of the device stand behind `device` than this database holds. Returns whether it was stored.
  virtual absl::StatusOr<bool> MergeDevice(const DeviceRow& device) = 0;
  virtual absl::StatusOr<std::vector<DeviceRow>> Devices(const std::string& fingerprint) = 0;  // "" = all
  // Returns the median latency of each trial of the workload, the oldest trial first.
  virtual absl::StatusOr<std::vector<TrialRow>> Trials(const std::string& workload) = 0;
  // For each other workload of that structure, takes the choices of its shortest single measurement. Returns different
  // choices only, those of the newest workload first, at most `limit`.
  virtual absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string& structure,
                                                                    const std::string& workload, int limit) = 0;
  // Returns, for each question of the device (or of all devices, for "") whose estimate is known, the estimate and the
  // median latency.
  virtual absl::StatusOr<std::vector<ModelErrorRow>> ModelErrors(const std::string& device_fingerprint) = 0;
  virtual absl::Status AppendPlans(absl::Span<const PlanRow> rows) = 0;
  // Appends the rows that are missing, and returns how many it appended. Comparisons of the same plans, worker, time
  // and ratio are the same comparison; measurements of the same bundle, device, threads, worker, time and median are
  // the same measurement.
  virtual absl::StatusOr<int64_t> MergePlans(absl::Span<const PlanComparisonRow> comparisons,
                                             absl::Span<const PlanRow> plans) = 0;
  // Visits all comparisons of the device ("": of all devices), then all measurements of whole plans; the newest first.
  virtual absl::Status ScanPlans(const std::string& device_fingerprint,
                                 const std::function<void(const PlanComparisonRow&)>& on_comparison,
                                 const std::function<void(const PlanRow&)>& on_plan) = 0;
  // Answers parallel to the keys of plans: of the rows with this reference the one with the median ratio (the larger
  // middle one of an even number, the older one of equal ones), or nullopt without rows.
  // Without `also_imported`, of the rows of this database's workers.
  virtual absl::StatusOr<std::vector<std::optional<PlanComparisonRow>>> PlanComparisons(
      const std::string& reference_key, absl::Span<const std::string> plan_keys, bool also_imported = true) = 0;
  // The same as ModelErrors for whole plans: one row for each bundle and number of threads.
  virtual absl::StatusOr<std::vector<ModelErrorRow>> PlanErrors(const std::string& device_fingerprint) = 0;

  // Blobs: the files that the artifact store has finished writing. Adds all rows or none; a digest that is there stays.
  // They are the tenant's from now on, too, until their rows are removed; "" is the default one.
  virtual absl::Status PutBlobs(absl::Span<const BlobRow> blobs, const std::string& tenant) = 0;
  absl::Status PutBlobs(absl::Span<const BlobRow> blobs) { return PutBlobs(blobs, ""); }
  // Whether each is the tenant's.
  virtual absl::StatusOr<std::vector<bool>> AreOfTenant(const std::string& tenant,
                                                        absl::Span<const std::string> digests) = 0;
  virtual absl::StatusOr<std::vector<std::optional<int64_t>>> BlobSizes(absl::Span<const std::string> digests) = 0;

  // Tokens. InsertToken fails with ALREADY_EXISTS for an id that is taken. RevokeToken keeps the first time of several,
  // removes the builds that came with the token, and does nothing for an unknown id, as ExtendToken, which sets the
  // end. Tokens answers with all, the oldest first.
  virtual absl::Status InsertToken(const TokenRow& token) = 0;
  virtual absl::Status RevokeToken(const std::string& id, int64_t now_ms) = 0;
  virtual absl::Status ExtendToken(const std::string& id, int64_t expires_ms) = 0;
  virtual absl::StatusOr<std::vector<TokenRow>> Tokens() = 0;
  virtual absl::Status RemoveTokens(absl::Span<const std::string> ids) = 0;

  // Retention. ExpireRows removes, all or none, at most `limit` rows of each kind: final jobs that are not pinned, with
  // their events and submissions, results of whose key no job is left, final tasks, and builds.
  virtual absl::StatusOr<ExpiredRows> ExpireRows(const Cutoffs& before, int limit) = 0;
  // Removes the oldest final jobs that are not pinned, a fiftieth of them, at least one and at most `limit`, and the
  // results of their keys if no job of the key is left.
  virtual absl::StatusOr<ExpiredRows> ExpireOldestJobs(int limit) = 0;
  // Names every blob that some row needs, in one snapshot; for a model's blob, one of the jobs that need it.
  // `on_request` gets the id and the request of each job whose model has no name, so that the caller reads it.
  virtual absl::Status ScanReferences(
      const std::function<void(const Reference&)>& on_reference,
      const std::function<void(const std::string&, const std::string&)>& on_request) = 0;
  virtual absl::StatusOr<std::vector<BlobRow>> Blobs(const std::string& after, int limit) = 0;  // ascending digests
  virtual absl::Status RemoveBlobs(absl::Span<const std::string> digests) = 0;
  // Removes at most `limit` measurements and returns how many. It may look at every row.
  virtual absl::StatusOr<int64_t> PruneMeasurements(const PruneFilter& filter, int limit) = 0;
  // Reads the whole database and says in words what is damaged.
  virtual absl::StatusOr<std::vector<std::string>> Faults() = 0;
  // Reads what opening has left unread because it was much, while others read and write. Fails with DATA_LOSS if it is
  // damaged; ends with CANCELLED soon after `stop`, which another thread calls, returns true.
  virtual absl::Status CheckTheRest(const std::function<bool()>& stop) = 0;
  // Writes a copy as of one instant to a new file, which is not synced, while others read and write.
  virtual absl::Status BackUp(const std::string& path) = 0;

  // Writes what is there already: does the disk take it?
  virtual absl::Status TryToStore() = 0;

  virtual int write_queue_depth() const = 0;
};

struct SqliteStoreOptions {
  std::function<void(double seconds, int operations)> on_commit;
  // Called with the text of each statement that is prepared, once for each connection. For tests.
  std::function<void(const std::string& sql)> on_statement = nullptr;
  // Called when a sync of the database has failed, before anybody is answered. It should end the process, because what
  // was written may be lost although later syncs succeed.
  std::function<void(const absl::Status&)> on_failed_sync = nullptr;
  // Called after each commit with whether the disk took it, on the thread that writes, before anybody is answered.
  std::function<void(const absl::Status&)> on_stored = nullptr;
  // Called with DATA_LOSS, on the thread that meets it, for each question or change that finds the file damaged, and
  // says which file. Whoever asked gets the error, too.
  std::function<void(const absl::Status&)> on_damage = nullptr;
  // A database up to this size is checked when it is opened, a larger one by CheckTheRest.
  int64_t most_checked_bytes = int64_t{64} << 20;
  // By which leases end.
  SteadyClock clock = SteadyNow;
};

// Opens or creates `path` and migrates it to this program's schema. Fails with DATA_LOSS if it is seen to be damaged.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path, SqliteStoreOptions options = {});

}  // namespace fusion

#endif  // FUSION_DB_STORES_STORE_H_
