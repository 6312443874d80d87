#include "db/stores/job_claims.h"

namespace fusion {

const JobClaims::Job* JobClaims::Find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

// A lease that ends later than any can is from before the machine was started, when its clock showed more.
bool JobClaims::IsOver(const Job& job, absl::Time now) {
  return job.lease_until <= now || job.lease_until > now + kLongestLease;
}

void JobClaims::End(Job& job, JobPhase state) {
  job.state = state;
  job.claimant.clear();
  job.lease_until = absl::UnixEpoch();
}

bool JobClaims::Holds(const JobClaim& claim) const {
  const Job* job = Find(claim.job);
  return job != nullptr && !IsFinal(job->state) && job->claimant == claim.claimant && job->fence == claim.fence;
}

JobClaims::Job* JobClaims::Held(const JobClaim& claim) { return Holds(claim) ? &jobs_.at(claim.job) : nullptr; }

std::optional<int64_t> JobClaims::Claim(const std::string& id, const std::string& claimant, absl::Duration lease,
                                        absl::Time now) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || IsFinal(found->second.state)) return std::nullopt;
  Job& job = found->second;
  // One's own claim is claimed anew: the answer to the first call may have been lost.
  if (!job.claimant.empty() && job.claimant != claimant && !IsOver(job, now)) return std::nullopt;
  job.state = JobPhase::kRunning;
  job.claimant = claimant;
  job.lease_until = now + lease;
  return ++job.fence;
}

bool JobClaims::Renew(const JobClaim& claim, absl::Duration lease, absl::Time now) {
  Job* job = claim.claimant.empty() ? nullptr : Held(claim);
  if (job != nullptr) job->lease_until = now + lease;
  return job != nullptr;
}

bool JobClaims::Fail(const JobClaim& claim) {
  Job* job = claim.claimant.empty() ? nullptr : Held(claim);
  if (job != nullptr) ++job->attempts;
  return job != nullptr;
}

bool JobClaims::Release(const JobClaim& claim) {
  Job* job = claim.claimant.empty() ? nullptr : Held(claim);
  if (job != nullptr) End(*job, JobPhase::kQueued);
  return job != nullptr;
}

bool JobClaims::Finish(const JobClaim& claim, JobPhase state) {
  Job* job = Held(claim);
  if (job != nullptr) End(*job, state);
  return job != nullptr;
}

bool JobClaims::Cancel(const std::string& id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || IsFinal(found->second.state)) return false;
  End(found->second, JobPhase::kCancelled);
  return true;
}

std::vector<std::string> JobClaims::ReleaseAll() {
  std::vector<std::string> released;
  for (auto& [id, job] : jobs_) {
    if (job.state != JobPhase::kRunning) continue;
    End(job, JobPhase::kQueued);
    released.push_back(id);
  }
  return released;
}

std::vector<std::string> JobClaims::Lapsed(const std::string& claimant, absl::Time now) const {
  std::vector<std::string> lapsed;
  for (const auto& [id, job] : jobs_) {
    if (!job.claimant.empty() && job.claimant != claimant && IsOver(job, now)) lapsed.push_back(id);
  }
  return lapsed;
}

}  // namespace fusion
