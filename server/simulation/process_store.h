// ProcessStore: the store as one simulated process of the server sees it. Commits take time, stand still or fail, and
// the process may die in one: then the seed decides whether it took effect, and nothing that the process does
// afterwards has any.
#ifndef FUSION_SERVER_SIMULATION_PROCESS_STORE_H_
#define FUSION_SERVER_SIMULATION_PROCESS_STORE_H_

#include <string>
#include <vector>

#include "server/simulation/fibers.h"
#include "server/simulation/history.h"
#include "server/simulation/random.h"
#include "server/testing/forwarding_store.h"

namespace fusion::simulation {

struct StoreFaults {
  double slow = 0, stall = 0, full = 0;  // probabilities of a commit: milliseconds, seconds, an error
  int dies_at_commit = -1;               // counted from the process's start; -1: at none
};

class ProcessStore : public testing::ForwardingStore {
 public:
  ProcessStore(Store* store, FiberThreads* threads, SeededRandom* random, History* history, const StoreFaults* faults)
      : ForwardingStore(store), store_(store), threads_(threads), random_(random), history_(history), faults_(faults) {}

  absl::StatusOr<std::string> InsertJob(const JobRow& job, const std::string& first_event) override {
    return Commit([&]() -> absl::StatusOr<std::string> {
      absl::StatusOr<std::string> id = store_->InsertJob(job, first_event);
      if (!id.ok() || *id != job.id) return id;
      if (IsFinal(job.state)) {
        history_->JobEnded(job.id, job.state);
      } else {
        history_->JobInserted(job.owner, UnfinishedOf(job.owner));
      }
      return id;
    });
  }
  absl::StatusOr<std::optional<JobRow>> ClaimJob(const std::string& id, const std::string& claimant,
                                                 absl::Duration lease, int64_t now_ms) override {
    return Commit([&] { return store_->ClaimJob(id, claimant, lease, now_ms); });
  }
  absl::StatusOr<std::vector<bool>> RenewJobs(absl::Span<const JobClaim> claims, absl::Duration lease) override {
    return Commit([&] { return store_->RenewJobs(claims, lease); });
  }
  absl::Status FailJobAttempt(const JobClaim& claim, const std::string& event) override {
    return Commit([&] { return store_->FailJobAttempt(claim, event); });
  }
  absl::StatusOr<std::string> GiveJobKey(const JobClaim& claim, const std::string& key) override {
    return Commit([&] { return store_->GiveJobKey(claim, key); });
  }
  absl::Status ReleaseJob(const JobClaim& claim, const std::string& event) override {
    return Commit([&] { return store_->ReleaseJob(claim, event); });
  }
  absl::Status ReleaseAllJobs(const std::string& event) override {
    return Commit([&] { return store_->ReleaseAllJobs(event); });
  }
  absl::Status FinishJob(const JobRow& job, const std::string& last_event,
                         const std::optional<ResultRow>& result) override {
    return Commit([&] {
      absl::Status finished = store_->FinishJob(job, last_event, result);
      if (finished.ok()) history_->JobEnded(job.id, job.state);
      return finished;
    });
  }
  absl::Status AppendJobEvent(const JobClaim& claim, const std::string& event) override {
    return Commit([&] { return store_->AppendJobEvent(claim, event); });
  }
  absl::Status OfferEarlyBundle(const JobClaim& claim, const ResultRow& early, const std::string& event) override {
    return Commit([&] { return store_->OfferEarlyBundle(claim, early, event); });
  }
  absl::StatusOr<Leaving> LeaveJob(const std::string& submission_id, int64_t now_ms, const std::string& cancelled,
                                   int error_code, const std::string& error_message) override {
    return Commit([&]() -> absl::StatusOr<Leaving> {
      const absl::StatusOr<JobRow> job = store_->FindSubmission(submission_id);
      absl::StatusOr<Leaving> leaving = store_->LeaveJob(submission_id, now_ms, cancelled, error_code, error_message);
      if (leaving.ok() && leaving->ended) history_->JobEnded(job->runs_as, JobPhase::kCancelled);
      return leaving;
    });
  }
  absl::Status PutResult(const ResultRow& result) override {
    return Commit([&] { return store_->PutResult(result); });
  }
  absl::StatusOr<std::vector<TaskAnswer>> CallTasks(absl::Span<const TaskCall> calls, int64_t now_ms) override {
    if (calls.empty() && !threads_->killed()) return std::vector<TaskAnswer>();
    return Commit([&] {
      absl::StatusOr<std::vector<TaskAnswer>> answers = store_->CallTasks(calls, now_ms);
      if (answers.ok()) history_->TasksCalled(calls, *answers);
      return answers;
    });
  }
  absl::Status PutWorker(const WorkerRow& worker) override {
    return Commit([&] { return store_->PutWorker(worker); });
  }

  // Reads. The artifact store holds a lock while it asks for blobs, so those calls never wait.
  absl::StatusOr<JobRow> GetJob(const std::string& id) override {
    return Read([&] { return store_->GetJob(id); });
  }
  absl::StatusOr<JobRow> FindSubmission(const std::string& id) override {
    return Read([&] { return store_->FindSubmission(id); });
  }
  absl::StatusOr<std::vector<JobRow>> UnfinishedJobs() override {
    return Read([&] { return store_->UnfinishedJobs(); });
  }
  absl::StatusOr<std::optional<ResultRow>> FindResult(const std::string& key) override {
    return Read([&] { return store_->FindResult(key); });
  }
  absl::StatusOr<std::vector<TaskRow>> UnfinishedTasks() override {
    return Read([&] { return store_->UnfinishedTasks(); });
  }
  absl::StatusOr<int64_t> LastFence() override {
    return Read([&] { return store_->LastFence(); });
  }
  absl::StatusOr<std::vector<SourceRow>> Sources() override {
    return Read([&] { return store_->Sources(); });
  }
  absl::StatusOr<std::vector<std::vector<BuildRow>>> FindBuilds(absl::Span<const std::string> keys) override {
    return Read([&] { return store_->FindBuilds(keys); });
  }
  absl::StatusOr<std::vector<std::optional<double>>> MedianLatencies(absl::Span<const std::string> keys) override {
    return Read([&] { return store_->MedianLatencies(keys); });
  }
  absl::Status PutBlobs(absl::Span<const BlobRow> blobs, const std::string& tenant) override {
    return threads_->killed() ? Dead() : store_->PutBlobs(blobs, tenant);
  }
  absl::StatusOr<std::vector<std::optional<int64_t>>> BlobSizes(absl::Span<const std::string> digests) override {
    if (threads_->killed()) return Dead();
    return store_->BlobSizes(digests);
  }

 private:
  static absl::Status Dead() { return absl::UnavailableError("the process is dead"); }

  template <typename Write>
  auto Commit(Write write) -> decltype(write()) {
    if (threads_->killed()) return Dead();
    const bool dies = ++commits_ == faults_->dies_at_commit;
    if (random_->Chance(faults_->slow)) threads_->Sleep(random_->Between(absl::ZeroDuration(), absl::Milliseconds(60)));
    if (random_->Chance(faults_->stall)) threads_->Sleep(random_->Between(absl::Milliseconds(500), absl::Seconds(9)));
    if (threads_->killed() || dies) {
      if (!threads_->killed()) threads_->Kill();
      if (random_->Chance(0.5)) (void)write();
      return Dead();
    }
    if (random_->Chance(faults_->full)) return absl::ResourceExhaustedError("the simulated disk is full");
    return write();
  }
  template <typename Query>
  auto Read(Query query) -> decltype(query()) {
    if (random_->Chance(faults_->slow * 0.2)) threads_->Sleep(absl::Milliseconds(random_->Below(20)));
    if (threads_->killed()) return Dead();
    return query();
  }
  int UnfinishedOf(const std::string& owner) {
    int count = 0;
    const absl::StatusOr<std::vector<JobRow>> jobs = store_->UnfinishedJobs();
    for (const JobRow& job : *jobs) count += job.owner == owner;
    return count;
  }

  Store* const store_;
  FiberThreads* const threads_;
  SeededRandom* const random_;
  History* const history_;
  const StoreFaults* const faults_;
  int commits_ = 0;
};

}  // namespace fusion::simulation

#endif  // FUSION_SERVER_SIMULATION_PROCESS_STORE_H_
