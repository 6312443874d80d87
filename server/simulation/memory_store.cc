#include "server/simulation/memory_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion::simulation {

MemoryStore::Job* MemoryStore::Find(const std::string& id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

bool MemoryStore::IsUnfinished(const std::string& id) const {
  const JobClaims::Job* job = claims_.Find(id);
  return job != nullptr && !IsFinal(job->state);
}

JobRow MemoryStore::Read(const Job& job) const {
  JobRow row = job.row;
  const JobClaims::Job& claimed = *claims_.Find(row.id);
  row.state = claimed.state, row.attempts = claimed.attempts;
  row.claimant = claimed.claimant, row.fence = claimed.fence;
  row.last_seq = static_cast<int64_t>(job.events.size());
  row.runs_as = row.id;
  std::set<std::string> owners;
  if (!job.left) owners.insert(row.owner);
  for (const std::string& id : job.joined) {
    const Joined& joined = joined_.at(id);
    if (!joined.left) owners.insert(joined.owner);
  }
  row.owners.assign(owners.begin(), owners.end());
  return row;
}

absl::StatusOr<std::string> MemoryStore::InsertJob(const JobRow& job, const std::string& first_event) {
  for (const auto& [id, other] : jobs_) {
    if (other.row.key != job.key || !IsUnfinished(id)) continue;
    joined_[job.id] = {id, job.owner};
    jobs_.at(id).joined.push_back(job.id);
    return id;
  }
  jobs_[job.id] = {job, {first_event}};
  claims_.Add(job.id, job.state);
  order_.push_back(job.id);
  return job.id;
}

absl::StatusOr<std::optional<JobRow>> MemoryStore::ClaimJob(const std::string& id, const std::string& claimant,
                                                            absl::Duration lease, int64_t now_ms) {
  if (!claims_.Claim(id, claimant, lease, clock_()).has_value()) return std::optional<JobRow>();
  Job& job = jobs_.at(id);
  job.row.started_ms = now_ms;
  return std::optional<JobRow>(Read(job));
}

absl::StatusOr<std::vector<bool>> MemoryStore::RenewJobs(absl::Span<const JobClaim> claims, absl::Duration lease) {
  std::vector<bool> held;
  for (const JobClaim& claim : claims) held.push_back(claims_.Renew(claim, lease, clock_()));
  return held;
}

namespace {
absl::Status Held(bool held, const std::string& job) {
  return held ? absl::OkStatus() : absl::FailedPreconditionError(absl::StrCat("job ", job, " is another's"));
}
}  // namespace

absl::Status MemoryStore::FailJobAttempt(const JobClaim& claim, const std::string& event) {
  const bool held = claims_.Fail(claim);
  if (held) jobs_.at(claim.job).events.push_back(event);
  return Held(held, claim.job);
}

absl::StatusOr<std::string> MemoryStore::GiveJobKey(const JobClaim& claim, const std::string& key) {
  RETURN_IF_ERROR(Held(!claim.claimant.empty() && claims_.Holds(claim), claim.job));
  for (const auto& [id, other] : jobs_) {
    if (other.row.key == key && IsUnfinished(id)) return id;
  }
  jobs_.at(claim.job).row.key = key;
  return claim.job;
}

absl::Status MemoryStore::ReleaseJob(const JobClaim& claim, const std::string& event) {
  const bool held = claims_.Release(claim);
  if (held) jobs_.at(claim.job).events.push_back(event);
  return Held(held, claim.job);
}

absl::Status MemoryStore::ReleaseAllJobs(const std::string& event) {
  for (const std::string& id : claims_.ReleaseAll()) jobs_.at(id).events.push_back(event);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JobRow>> MemoryStore::LapsedJobs(const std::string& claimant) {
  std::vector<JobRow> rows;
  for (const std::string& id : claims_.Lapsed(claimant, clock_())) rows.push_back(Read(jobs_.at(id)));
  return rows;
}

absl::Status MemoryStore::FinishJob(const JobRow& job, const std::string& last_event,
                                    const std::optional<ResultRow>& result) {
  const bool held = claims_.Finish(job.claim(), job.state);
  RETURN_IF_ERROR(Held(held, job.id));
  Job& stored = jobs_.at(job.id);
  JobRow& row = stored.row;
  row.finished_ms = job.finished_ms, row.account = job.account, row.checks = job.checks;
  row.bundle_digest = job.bundle_digest, row.bundle_bytes = job.bundle_bytes;
  row.error_code = job.error_code, row.error_message = job.error_message;
  stored.events.push_back(last_event);
  if (result.has_value()) results_[result->key] = *result;
  return absl::OkStatus();
}

absl::Status MemoryStore::AppendJobEvent(const JobClaim& claim, const std::string& event) {
  const bool held = claims_.Holds(claim);
  if (held) jobs_.at(claim.job).events.push_back(event);
  return Held(held, claim.job);
}

absl::Status MemoryStore::OfferEarlyBundle(const JobClaim& claim, const ResultRow& early, const std::string& event) {
  RETURN_IF_ERROR(Held(!claim.claimant.empty() && claims_.Holds(claim), claim.job));
  Job& job = jobs_.at(claim.job);
  job.row.early_digest = early.bundle_digest, job.row.early_bytes = early.bundle_bytes;
  job.row.early_key = early.key;
  job.events.push_back(event);
  results_[early.key] = early;
  return absl::OkStatus();
}

absl::StatusOr<JobRow> MemoryStore::GetJob(const std::string& id) {
  const Job* job = Find(id);
  if (job == nullptr) return absl::NotFoundError(absl::StrCat("no job '", id, "'"));
  return Read(*job);
}

absl::StatusOr<JobRow> MemoryStore::FindSubmission(const std::string& id) {
  const auto joined = joined_.find(id);
  const Job* job = Find(joined == joined_.end() ? id : joined->second.job);
  if (job == nullptr) return absl::NotFoundError(absl::StrCat("no job '", id, "'"));
  JobRow row = Read(*job);
  const bool left = joined == joined_.end() ? job->left : joined->second.left;
  if (joined != joined_.end()) row.id = id, row.owner = joined->second.owner, row.left_seq = joined->second.left_seq;
  if (left) {
    row.state = JobPhase::kCancelled;
    row.last_seq = row.left_seq;
    row.bundle_digest.clear();
  }
  return row;
}

absl::StatusOr<Store::Leaving> MemoryStore::LeaveJob(const std::string& submission_id, int64_t now_ms,
                                                     const std::string& cancelled, int error_code,
                                                     const std::string& error_message) {
  const auto joined = joined_.find(submission_id);
  const std::string id = joined == joined_.end() ? submission_id : joined->second.job;
  Job* job = IsUnfinished(id) ? Find(id) : nullptr;
  if (job == nullptr || (joined == joined_.end() ? job->left : joined->second.left)) return Leaving();
  Leaving leaving;
  leaving.left = true;
  const int64_t seq = static_cast<int64_t>(job->events.size()) + 1;
  if (joined == joined_.end()) {
    job->left = true;
    job->row.left_seq = seq;
  } else {
    joined->second.left = true;
    joined->second.left_seq = seq;
  }
  leaving.ended = job->left && std::none_of(joined_.begin(), joined_.end(), [&](const auto& other) {
                    return other.second.job == id && !other.second.left;
                  });
  if (leaving.ended) {
    (void)claims_.Cancel(id);
    job->row.finished_ms = now_ms;
    job->row.error_code = error_code, job->row.error_message = error_message;
    job->events.push_back(cancelled);
  }
  return leaving;
}

absl::StatusOr<std::vector<JobRow>> MemoryStore::UnfinishedJobs() {
  std::vector<JobRow> rows;
  for (const std::string& id : order_) {
    if (IsUnfinished(id)) rows.push_back(Read(jobs_.at(id)));
  }
  return rows;
}

absl::StatusOr<std::vector<JobEventRow>> MemoryStore::JobEvents(const std::string& id, int64_t after_seq, int limit) {
  std::vector<JobEventRow> events;
  const Job* job = Find(id);
  const int64_t last = job == nullptr ? 0 : static_cast<int64_t>(job->events.size());
  for (int64_t seq = std::max<int64_t>(after_seq, 0) + 1; seq <= last && static_cast<int>(events.size()) < limit; ++seq)
    events.push_back({seq, job->events[static_cast<size_t>(seq - 1)]});
  return events;
}

absl::StatusOr<std::optional<ResultRow>> MemoryStore::FindResult(const std::string& key) {
  const auto found = results_.find(key);
  return found == results_.end() ? std::optional<ResultRow>() : std::optional<ResultRow>(found->second);
}

absl::Status MemoryStore::PutResult(const ResultRow& result) {
  results_[result.key] = result;
  return absl::OkStatus();
}

void MemoryStore::Accept(const AcceptedRows& accepted) {
  for (const MeasurementRow& row : accepted.measurements) {
    if (row.task.empty() || measured_.insert({row.task, row.fence, row.item}).second) {
      medians_[row.question_key].push_back(row.median_ns);
    }
  }
  for (const BuildRow& row : accepted.builds) builds_[row.key][{row.toolchain, row.builder}] = row;
}

absl::StatusOr<std::vector<TaskAnswer>> MemoryStore::CallTasks(absl::Span<const TaskCall> calls, int64_t now_ms) {
  for (const TaskCall& call : calls) RETURN_IF_ERROR(CheckCall(call));
  std::vector<TaskAnswer> answers;
  for (const TaskCall& call : calls) {
    answers.push_back(tasks_.Call(call, now_ms, clock_()));
    const auto* complete = std::get_if<CompleteTask>(&call);
    if (complete != nullptr && answers.back().held) Accept(complete->rows);
  }
  return answers;
}

absl::StatusOr<std::optional<TaskRow>> MemoryStore::FindTask(const std::string& key) {
  const TaskRow* found = tasks_.FindKey(key);
  return found == nullptr ? std::optional<TaskRow>() : std::optional<TaskRow>(*found);
}

absl::StatusOr<std::vector<TaskRow>> MemoryStore::UnfinishedTasks() {
  std::vector<TaskRow> rows;
  for (const TaskClaims::Task& task : tasks_.tasks()) {
    if (task.row.state <= TaskPhase::kLeased) rows.push_back(task.row);
  }
  return rows;
}

absl::StatusOr<std::vector<SourceRow>> MemoryStore::Sources() {
  std::vector<SourceRow> rows;
  for (const auto& [name, row] : tasks_.sources()) rows.push_back(row);
  return rows;
}

absl::StatusOr<std::vector<std::vector<BuildRow>>> MemoryStore::FindBuilds(absl::Span<const std::string> keys) {
  std::vector<std::vector<BuildRow>> rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = builds_.find(keys[i]);
    if (found == builds_.end()) continue;
    for (const auto& [builder, row] : found->second) rows[i].push_back(row);
  }
  return rows;
}

absl::Status MemoryStore::PutWorker(const WorkerRow& worker) {
  std::erase_if(workers_, [&](const WorkerRow& row) { return row.id == worker.id; });
  workers_.push_back(worker);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WorkerRow>> MemoryStore::FindWorker(const std::string& id) {
  for (const WorkerRow& row : workers_) {
    if (row.id == id) return std::optional<WorkerRow>(row);
  }
  return std::optional<WorkerRow>();
}

absl::StatusOr<std::optional<WorkerRow>> MemoryStore::LatestWorker(const std::string& device_kind) {
  for (auto row = workers_.rbegin(); row != workers_.rend(); ++row) {
    if (row->device_kind == device_kind) return std::optional<WorkerRow>(*row);
  }
  return std::optional<WorkerRow>();
}

absl::StatusOr<std::vector<std::optional<double>>> MemoryStore::MedianLatencies(absl::Span<const std::string> keys) {
  std::vector<std::optional<double>> latencies(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = medians_.find(keys[i]);
    if (found == medians_.end()) continue;
    std::vector<double> medians = found->second;
    std::sort(medians.begin(), medians.end());
    latencies[i] = medians[medians.size() / 2];
  }
  return latencies;
}

absl::Status MemoryStore::PutBlobs(absl::Span<const BlobRow> blobs, const std::string&) {
  for (const BlobRow& blob : blobs) blobs_.emplace(blob.digest, blob.size_bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::optional<int64_t>>> MemoryStore::BlobSizes(absl::Span<const std::string> digests) {
  std::vector<std::optional<int64_t>> sizes(digests.size());
  for (size_t i = 0; i < digests.size(); ++i) {
    if (const auto found = blobs_.find(digests[i]); found != blobs_.end()) sizes[i] = found->second;
  }
  return sizes;
}

}  // namespace fusion::simulation
