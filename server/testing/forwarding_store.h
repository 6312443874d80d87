// A store that passes every call on to another one. Tests derive from it to make single calls fail or stand still.
#ifndef FUSION_SERVER_TESTING_FORWARDING_STORE_H_
#define FUSION_SERVER_TESTING_FORWARDING_STORE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/stores/store.h"

namespace fusion::testing {

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store* store) : store_(store) {}

  absl::StatusOr<std::string> InsertJob(const JobRow& job, const std::string& first_event) override {
    return store_->InsertJob(job, first_event);
  }
  absl::StatusOr<std::optional<JobRow>> ClaimJob(const std::string& id, const std::string& claimant,
                                                 absl::Duration lease, int64_t now_ms) override {
    return store_->ClaimJob(id, claimant, lease, now_ms);
  }
  absl::StatusOr<std::vector<bool>> RenewJobs(absl::Span<const JobClaim> claims, absl::Duration lease) override {
    return store_->RenewJobs(claims, lease);
  }
  absl::Status FailJobAttempt(const JobClaim& claim, const std::string& event) override {
    return store_->FailJobAttempt(claim, event);
  }
  absl::StatusOr<std::string> GiveJobKey(const JobClaim& claim, const std::string& key) override {
    return store_->GiveJobKey(claim, key);
  }
  absl::Status ReleaseJob(const JobClaim& claim, const std::string& event) override {
    return store_->ReleaseJob(claim, event);
  }
  absl::Status ReleaseAllJobs(const std::string& event) override { return store_->ReleaseAllJobs(event); }
  absl::StatusOr<std::vector<JobRow>> LapsedJobs(const std::string& claimant) override {
    return store_->LapsedJobs(claimant);
  }
  absl::Status FinishJob(const JobRow& job, const std::string& last_event,
                         const std::optional<ResultRow>& result) override {
    return store_->FinishJob(job, last_event, result);
  }
  absl::Status AppendJobEvent(const JobClaim& claim, const std::string& event) override {
    return store_->AppendJobEvent(claim, event);
  }
  absl::Status OfferEarlyBundle(const JobClaim& claim, const ResultRow& early, const std::string& event) override {
    return store_->OfferEarlyBundle(claim, early, event);
  }
  absl::StatusOr<JobRow> GetJob(const std::string& id) override { return store_->GetJob(id); }
  absl::StatusOr<JobRow> FindSubmission(const std::string& id) override { return store_->FindSubmission(id); }
  absl::StatusOr<Leaving> LeaveJob(const std::string& submission_id, int64_t now_ms, const std::string& cancelled,
                                   int error_code, const std::string& error_message) override {
    return store_->LeaveJob(submission_id, now_ms, cancelled, error_code, error_message);
  }
  absl::StatusOr<JobRow> FindRequest(const std::string& owner, const std::string& request_id) override {
    return store_->FindRequest(owner, request_id);
  }
  absl::Status PinJob(const std::string& submission_id, bool pinned) override {
    return store_->PinJob(submission_id, pinned);
  }
  absl::StatusOr<JobPage> PageOfJobs(int limit, const std::optional<std::string>& owner,
                                     const JobCursor& cursor) override {
    return store_->PageOfJobs(limit, owner, cursor);
  }
  absl::StatusOr<std::vector<JobRow>> UnfinishedJobs() override { return store_->UnfinishedJobs(); }
  absl::StatusOr<std::vector<JobEventRow>> JobEvents(const std::string& id, int64_t after_seq, int limit) override {
    return store_->JobEvents(id, after_seq, limit);
  }
  absl::StatusOr<std::optional<ResultRow>> FindResult(const std::string& key) override {
    return store_->FindResult(key);
  }
  absl::Status PutResult(const ResultRow& result) override { return store_->PutResult(result); }
  absl::StatusOr<std::vector<TaskAnswer>> CallTasks(absl::Span<const TaskCall> calls, int64_t now_ms) override {
    return store_->CallTasks(calls, now_ms);
  }
  absl::StatusOr<std::optional<TaskRow>> FindTask(const std::string& key) override { return store_->FindTask(key); }
  absl::StatusOr<std::vector<TaskRow>> UnfinishedTasks() override { return store_->UnfinishedTasks(); }
  absl::StatusOr<int64_t> LastFence() override { return store_->LastFence(); }
  absl::StatusOr<std::vector<SourceRow>> Sources() override { return store_->Sources(); }
  absl::StatusOr<std::vector<std::vector<BuildRow>>> FindBuilds(absl::Span<const std::string> keys) override {
    return store_->FindBuilds(keys);
  }
  absl::Status PutDrainedWorker(const DrainedWorkerRow& worker) override { return store_->PutDrainedWorker(worker); }
  absl::Status RemoveDrainedWorker(const std::string& name) override { return store_->RemoveDrainedWorker(name); }
  absl::StatusOr<std::vector<DrainedWorkerRow>> DrainedWorkers() override { return store_->DrainedWorkers(); }
  absl::Status PutWorker(const WorkerRow& worker) override { return store_->PutWorker(worker); }
  absl::StatusOr<std::optional<WorkerRow>> FindWorker(const std::string& id) override { return store_->FindWorker(id); }
  absl::StatusOr<std::optional<WorkerRow>> LatestWorker(const std::string& device_kind) override {
    return store_->LatestWorker(device_kind);
  }
  absl::StatusOr<int64_t> MergeMeasurements(absl::Span<const MeasurementRow> rows) override {
    return store_->MergeMeasurements(rows);
  }
  absl::StatusOr<std::vector<ImportedLatency>> ImportedLatencies(absl::Span<const std::string> keys) override {
    return store_->ImportedLatencies(keys);
  }
  absl::StatusOr<std::vector<std::optional<double>>> MedianLatencies(absl::Span<const std::string> keys) override {
    return store_->MedianLatencies(keys);
  }
  absl::Status ScanMeasurements(const MeasurementFilter& filter,
                                const std::function<void(const MeasurementRow&)>& on_row) override {
    return store_->ScanMeasurements(filter, on_row);
  }
  absl::StatusOr<ProfileCounts> CountMeasurements() override { return store_->CountMeasurements(); }
  absl::StatusOr<bool> MergeDevice(const DeviceRow& device) override { return store_->MergeDevice(device); }
  absl::StatusOr<std::vector<DeviceRow>> Devices(const std::string& fingerprint) override {
    return store_->Devices(fingerprint);
  }
  absl::StatusOr<std::vector<TrialRow>> Trials(const std::string& workload) override {
    return store_->Trials(workload);
  }
  absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string& structure, const std::string& workload,
                                                            int limit) override {
    return store_->NeighbourChoices(structure, workload, limit);
  }
  absl::StatusOr<std::vector<ModelErrorRow>> ModelErrors(const std::string& device_fingerprint) override {
    return store_->ModelErrors(device_fingerprint);
  }
  absl::Status AppendPlans(absl::Span<const PlanRow> rows) override { return store_->AppendPlans(rows); }
  absl::StatusOr<int64_t> MergePlans(absl::Span<const PlanComparisonRow> comparisons,
                                     absl::Span<const PlanRow> plans) override {
    return store_->MergePlans(comparisons, plans);
  }
  absl::Status ScanPlans(const std::string& device_fingerprint,
                         const std::function<void(const PlanComparisonRow&)>& on_comparison,
                         const std::function<void(const PlanRow&)>& on_plan) override {
    return store_->ScanPlans(device_fingerprint, on_comparison, on_plan);
  }
  absl::StatusOr<std::vector<std::optional<PlanComparisonRow>>> PlanComparisons(const std::string& reference_key,
                                                                                absl::Span<const std::string> plan_keys,
                                                                                bool also_imported = true) override {
    return store_->PlanComparisons(reference_key, plan_keys, also_imported);
  }
  absl::StatusOr<std::vector<ModelErrorRow>> PlanErrors(const std::string& device_fingerprint) override {
    return store_->PlanErrors(device_fingerprint);
  }
  absl::Status PutBlobs(absl::Span<const BlobRow> blobs, const std::string& tenant) override {
    return store_->PutBlobs(blobs, tenant);
  }
  absl::StatusOr<std::vector<bool>> AreOfTenant(const std::string& tenant,
                                                absl::Span<const std::string> digests) override {
    return store_->AreOfTenant(tenant, digests);
  }
  absl::StatusOr<std::vector<std::optional<int64_t>>> BlobSizes(absl::Span<const std::string> digests) override {
    return store_->BlobSizes(digests);
  }
  absl::Status InsertToken(const TokenRow& token) override { return store_->InsertToken(token); }
  absl::Status RevokeToken(const std::string& id, int64_t now_ms) override { return store_->RevokeToken(id, now_ms); }
  absl::Status ExtendToken(const std::string& id, int64_t expires_ms) override {
    return store_->ExtendToken(id, expires_ms);
  }
  absl::StatusOr<std::vector<TokenRow>> Tokens() override { return store_->Tokens(); }
  absl::Status RemoveTokens(absl::Span<const std::string> ids) override { return store_->RemoveTokens(ids); }
  absl::StatusOr<ExpiredRows> ExpireOldestJobs(int limit) override { return store_->ExpireOldestJobs(limit); }
  absl::StatusOr<ExpiredRows> ExpireRows(const Cutoffs& before, int limit) override {
    return store_->ExpireRows(before, limit);
  }
  absl::Status ScanReferences(const std::function<void(const Reference&)>& on_reference,
                              const std::function<void(const std::string&, const std::string&)>& on_request) override {
    return store_->ScanReferences(on_reference, on_request);
  }
  absl::StatusOr<std::vector<BlobRow>> Blobs(const std::string& after, int limit) override {
    return store_->Blobs(after, limit);
  }
  absl::Status RemoveBlobs(absl::Span<const std::string> digests) override { return store_->RemoveBlobs(digests); }
  absl::StatusOr<int64_t> PruneMeasurements(const PruneFilter& filter, int limit) override {
    return store_->PruneMeasurements(filter, limit);
  }
  absl::StatusOr<std::vector<std::string>> Faults() override { return store_->Faults(); }
  absl::Status CheckTheRest(const std::function<bool()>& stop) override { return store_->CheckTheRest(stop); }
  absl::Status BackUp(const std::string& path) override { return store_->BackUp(path); }
  absl::Status TryToStore() override { return store_->TryToStore(); }
  int write_queue_depth() const override { return store_->write_queue_depth(); }

 private:
  Store* const store_;
};

}  // namespace fusion::testing

#endif  // FUSION_SERVER_TESTING_FORWARDING_STORE_H_
