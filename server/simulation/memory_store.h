// MemoryStore: the part of a Store that the scheduler's farm and the job runner use, in memory, for one thread. It has
// the meaning that the conformance suite gives to SQLite's; simulation_test compares both. Other calls go to `rest`.
#ifndef FUSION_SERVER_SIMULATION_MEMORY_STORE_H_
#define FUSION_SERVER_SIMULATION_MEMORY_STORE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "db/stores/job_claims.h"
#include "db/stores/task_claims.h"
#include "runtime/base/steady_clock.h"
#include "server/testing/forwarding_store.h"

namespace fusion::simulation {

class MemoryStore : public testing::ForwardingStore {
 public:
  // `clock`: by which leases end.
  MemoryStore(Store* rest, SteadyClock clock) : ForwardingStore(rest), clock_(std::move(clock)) {}

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
  absl::StatusOr<std::vector<JobRow>> UnfinishedJobs() override;
  absl::StatusOr<std::vector<JobEventRow>> JobEvents(const std::string& id, int64_t after_seq, int limit) override;
  absl::StatusOr<std::optional<ResultRow>> FindResult(const std::string& key) override;
  absl::Status PutResult(const ResultRow& result) override;

  absl::StatusOr<std::vector<TaskAnswer>> CallTasks(absl::Span<const TaskCall> calls, int64_t now_ms) override;
  absl::StatusOr<std::optional<TaskRow>> FindTask(const std::string& key) override;
  absl::StatusOr<std::vector<TaskRow>> UnfinishedTasks() override;
  absl::StatusOr<int64_t> LastFence() override { return tasks_.last_fence(); }
  absl::StatusOr<std::vector<SourceRow>> Sources() override;
  absl::StatusOr<std::vector<std::vector<BuildRow>>> FindBuilds(absl::Span<const std::string> keys) override;

  absl::Status PutWorker(const WorkerRow& worker) override;
  absl::StatusOr<std::optional<WorkerRow>> FindWorker(const std::string& id) override;
  absl::StatusOr<std::optional<WorkerRow>> LatestWorker(const std::string& device_kind) override;
  absl::StatusOr<std::vector<DrainedWorkerRow>> DrainedWorkers() override { return std::vector<DrainedWorkerRow>(); }

  absl::StatusOr<std::vector<std::optional<double>>> MedianLatencies(absl::Span<const std::string> keys) override;
  absl::StatusOr<std::vector<DeviceRow>> Devices(const std::string&) override { return std::vector<DeviceRow>(); }
  absl::StatusOr<std::vector<ModelErrorRow>> ModelErrors(const std::string&) override {
    return std::vector<ModelErrorRow>();
  }

  absl::Status PutBlobs(absl::Span<const BlobRow> blobs, const std::string& tenant) override;
  // There is one tenant.
  absl::StatusOr<std::vector<bool>> AreOfTenant(const std::string&, absl::Span<const std::string> digests) override {
    return std::vector<bool>(digests.size(), true);
  }
  absl::StatusOr<std::vector<std::optional<int64_t>>> BlobSizes(absl::Span<const std::string> digests) override;
  int write_queue_depth() const override { return 0; }

 private:
  struct Job {
    JobRow row;  // `claims_` has its state
    std::vector<std::string> events;
    bool left = false;
    std::vector<std::string> joined = {};  // ids of submissions
  };
  struct Joined {
    std::string job;
    std::string owner;
    bool left = false;
    int64_t left_seq = 0;
  };
  void Accept(const AcceptedRows& accepted);
  Job* Find(const std::string& id);
  bool IsUnfinished(const std::string& id) const;
  JobRow Read(const Job& job) const;

  const SteadyClock clock_;
  JobClaims claims_;
  std::vector<std::string> order_;  // ids of jobs, the oldest first
  std::map<std::string, Job> jobs_;
  std::map<std::string, Joined> joined_;
  std::map<std::string, ResultRow> results_;
  TaskClaims tasks_;
  // By toolchain and builder, by the key of the unit.
  std::map<std::string, std::map<std::pair<std::string, std::string>, BuildRow>> builds_;
  std::vector<WorkerRow> workers_;  // the one seen last is last
  std::map<std::string, std::vector<double>> medians_;
  std::set<std::tuple<std::string, int64_t, int64_t>> measured_;  // task, fence, item
  std::map<std::string, int64_t> blobs_;
};

}  // namespace fusion::simulation

#endif  // FUSION_SERVER_SIMULATION_MEMORY_STORE_H_
