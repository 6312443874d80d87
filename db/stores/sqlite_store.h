// The embedded Store. It is private to db/stores: callers use OpenSqliteStore.
#ifndef FUSION_DB_STORES_SQLITE_STORE_H_
#define FUSION_DB_STORES_SQLITE_STORE_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "db/sqlite/writer.h"
#include "db/stores/store.h"

namespace fusion {

// These run inside a transaction of the caller.
absl::Status InsertAccepted(Connection& db, const AcceptedRows& accepted);
absl::Status InsertEvent(Connection& db, const std::string& job_id, const std::string& event);
absl::Status InsertResult(Connection& db, const ResultRow& result);
absl::Status InsertComparison(Connection& db, const PlanComparisonRow& row);
// Is the source in quarantine? A source `imported/S` is with S, too.
absl::StatusOr<bool> IsQuarantined(Connection& db, const std::string& source);

// The sources of imported rows are known from now on, but for those in quarantine.
absl::Status KnowImportedSources(Connection& db, const std::set<std::string>& sources);

class SqliteStore : public Store {
 public:
  SqliteStore(std::string path, std::unique_ptr<Writer> writer, std::function<void(const std::string&)> on_statement,
              std::function<void(const absl::Status&)> on_damage, bool checked, SteadyClock clock)
      : path_(std::move(path)),
        on_statement_(std::move(on_statement)),
        on_damage_(std::move(on_damage)),
        checked_(checked),
        clock_(std::move(clock)),
        writer_(std::move(writer)) {}

  absl::StatusOr<std::string> InsertJob(const JobRow& job, const std::string& first_event) override;
  absl::StatusOr<std::optional<JobRow>> ClaimJob(const std::string& id, const std::string& claimant,
                                                 absl::Duration lease, int64_t now_ms) override;
  absl::StatusOr<std::vector<bool>> RenewJobs(absl::Span<const JobClaim> claims, absl::Duration lease) override;
  absl::Status FailJobAttempt(const JobClaim& claim, const std::string& event) override;
  absl::StatusOr<std::string> GiveJobKey(const JobClaim& claim, const std::string& key) override;
  absl::Status ReleaseJob(const JobClaim& claim, const std::string& event) override;
  absl::Status ReleaseAllJobs(const std::string& event) override;
  absl::StatusOr<std::vector<JobRow>> LapsedJobs(const std::string& claimant) override;
  absl::Status FinishJob(const JobRow& job, const std::string& last_event,
                         const std::optional<ResultRow>& result) override;
  absl::Status AppendJobEvent(const JobClaim& claim, const std::string& event) override;
  absl::Status OfferEarlyBundle(const JobClaim& claim, const ResultRow& early, const std::string& event) override;
  absl::StatusOr<JobRow> GetJob(const std::string& id) override;
  absl::StatusOr<JobRow> FindSubmission(const std::string& id) override;
  absl::StatusOr<Leaving> LeaveJob(const std::string& submission_id, int64_t now_ms, const std::string& cancelled,
                                   int error_code, const std::string& error_message) override;
  absl::StatusOr<JobRow> FindRequest(const std::string& owner, const std::string& request_id) override;
  absl::Status PinJob(const std::string& submission_id, bool pinned) override;
  absl::StatusOr<JobPage> PageOfJobs(int limit, const std::optional<std::string>& owner,
                                     const JobCursor& cursor) override;
  absl::StatusOr<std::vector<JobRow>> UnfinishedJobs() override;
  absl::StatusOr<std::vector<JobEventRow>> JobEvents(const std::string& id, int64_t after_seq, int limit) override;
  absl::StatusOr<std::optional<ResultRow>> FindResult(const std::string& key) override;
  absl::Status PutResult(const ResultRow& result) override;

  absl::StatusOr<std::vector<TaskAnswer>> CallTasks(absl::Span<const TaskCall> calls, int64_t now_ms) override;
  absl::StatusOr<std::optional<TaskRow>> FindTask(const std::string& key) override;
  absl::StatusOr<std::vector<TaskRow>> UnfinishedTasks() override;
  absl::StatusOr<int64_t> LastFence() override;

  absl::StatusOr<std::vector<std::vector<BuildRow>>> FindBuilds(absl::Span<const std::string> keys) override;

  absl::Status PutWorker(const WorkerRow& worker) override;
  absl::Status PutDrainedWorker(const DrainedWorkerRow& worker) override;
  absl::Status RemoveDrainedWorker(const std::string& name) override;
  absl::StatusOr<std::vector<DrainedWorkerRow>> DrainedWorkers() override;
  absl::StatusOr<std::vector<SourceRow>> Sources() override;
  absl::StatusOr<std::optional<WorkerRow>> FindWorker(const std::string& id) override;
  absl::StatusOr<std::optional<WorkerRow>> LatestWorker(const std::string& device_kind) override;

  absl::StatusOr<int64_t> MergeMeasurements(absl::Span<const MeasurementRow> rows) override;
  absl::StatusOr<std::vector<std::optional<double>>> MedianLatencies(absl::Span<const std::string> keys) override;
  absl::StatusOr<std::vector<ImportedLatency>> ImportedLatencies(absl::Span<const std::string> keys) override;
  absl::Status ScanMeasurements(const MeasurementFilter& filter,
                                const std::function<void(const MeasurementRow&)>& on_row) override;
  absl::StatusOr<ProfileCounts> CountMeasurements() override;
  absl::StatusOr<bool> MergeDevice(const DeviceRow& device) override;
  absl::StatusOr<std::vector<DeviceRow>> Devices(const std::string& fingerprint) override;
  absl::StatusOr<std::vector<TrialRow>> Trials(const std::string& workload) override;
  absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string& structure, const std::string& workload,
                                                            int limit) override;
  absl::StatusOr<std::vector<ModelErrorRow>> ModelErrors(const std::string& device_fingerprint) override;
  absl::Status AppendPlans(absl::Span<const PlanRow> rows) override;
  absl::StatusOr<int64_t> MergePlans(absl::Span<const PlanComparisonRow> comparisons,
                                     absl::Span<const PlanRow> plans) override;
  absl::Status ScanPlans(const std::string& device_fingerprint,
                         const std::function<void(const PlanComparisonRow&)>& on_comparison,
                         const std::function<void(const PlanRow&)>& on_plan) override;
  absl::StatusOr<std::vector<std::optional<PlanComparisonRow>>> PlanComparisons(const std::string& reference_key,
                                                                                absl::Span<const std::string> plan_keys,
                                                                                bool also_imported = true) override;
  absl::StatusOr<std::vector<ModelErrorRow>> PlanErrors(const std::string& device_fingerprint) override;

  absl::Status PutBlobs(absl::Span<const BlobRow> blobs, const std::string& tenant) override;
  absl::StatusOr<std::vector<bool>> AreOfTenant(const std::string& tenant,
                                                absl::Span<const std::string> digests) override;
  absl::StatusOr<std::vector<std::optional<int64_t>>> BlobSizes(absl::Span<const std::string> digests) override;
  absl::Status InsertToken(const TokenRow& token) override;
  absl::Status RevokeToken(const std::string& id, int64_t now_ms) override;
  absl::Status ExtendToken(const std::string& id, int64_t expires_ms) override;
  absl::StatusOr<std::vector<TokenRow>> Tokens() override;
  absl::Status RemoveTokens(absl::Span<const std::string> ids) override;
  absl::StatusOr<ExpiredRows> ExpireOldestJobs(int limit) override;
  absl::StatusOr<ExpiredRows> ExpireRows(const Cutoffs& before, int limit) override;
  absl::Status ScanReferences(const std::function<void(const Reference&)>& on_reference,
                              const std::function<void(const std::string&, const std::string&)>& on_request) override;
  absl::StatusOr<std::vector<BlobRow>> Blobs(const std::string& after, int limit) override;
  absl::Status RemoveBlobs(absl::Span<const std::string> digests) override;
  absl::StatusOr<int64_t> PruneMeasurements(const PruneFilter& filter, int limit) override;
  absl::StatusOr<std::vector<std::string>> Faults() override;
  absl::Status CheckTheRest(const std::function<bool()>& stop) override;
  absl::Status BackUp(const std::string& path) override;
  absl::Status TryToStore() override;
  int write_queue_depth() const override { return writer_->queue_depth(); }

 private:
  // Runs `read` on a read-only connection from the pool, inside one snapshot.
  absl::Status Read(const std::function<absl::Status(Connection&)>& read);
  absl::StatusOr<std::optional<WorkerRow>> QueryWorker(const std::string& tail, const std::string& value);
  absl::StatusOr<std::vector<JobRow>> QueryJobs(const std::string& tail, const std::vector<SqlValue>& values);
  // The same for submissions: each row as FindSubmission describes. `joined`: those that joined, else the first ones.
  absl::StatusOr<std::vector<JobRow>> QuerySubmissions(bool joined, const std::string& tail,
                                                       const std::vector<SqlValue>& values);
  // `sql` selects a name, a measured median and an estimate, ordered by name. Each name gives one row.
  absl::StatusOr<std::vector<ModelErrorRow>> Errors(const std::string& sql, const std::string& device_fingerprint);
  absl::StatusOr<std::vector<TaskRow>> QueryTasks(const std::string& tail, const std::vector<SqlValue>& values);

  const std::string path_;
  const std::function<void(const std::string&)> on_statement_;
  const std::function<void(const absl::Status&)> on_damage_;
  const bool checked_;  // when it was opened
  const SteadyClock clock_;
  const std::unique_ptr<Writer> writer_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_readers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion

#endif  // FUSION_DB_STORES_SQLITE_STORE_H_
