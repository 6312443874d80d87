// The part of JobRunner that takes up jobs from before its start, keeps its claims, and takes over those of processes
// that are gone.
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "server/jobs/job_messages.h"
#include "server/jobs/job_runner.h"

namespace fusion {

absl::Status JobRunner::Restore() {
  std::error_code error;
  std::filesystem::remove_all(options_.work_folder, error);
  std::filesystem::create_directories(options_.work_folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make ", options_.work_folder));
  ASSIGN_OR_RETURN(std::vector<JobRow> unfinished, store_->UnfinishedJobs());
  if (!options_.alone) {  // TakeOverLapsed finds those whose claimants are gone
    std::erase_if(unfinished, [](const JobRow& job) { return job.state == JobPhase::kRunning; });
  }
  for (const JobRow& job : unfinished) {
    BeginLog(job.id, TraceOf(job));
    if (job.attempts >= options_.max_attempts) RETURN_IF_ERROR(GiveUp(job));
  }
  // Nothing is said of jobs that only waited: there may be thousands, and nothing has changed for them.
  const v1::JobEvent again = MakeJobEvent(v1::QUEUED, "queued", "the server was restarted; the job starts again");
  if (options_.alone) RETURN_IF_ERROR(store_->ReleaseAllJobs(again.SerializeAsString()));
  int waiting = 0;
  for (const JobRow& job : unfinished) {
    if (job.attempts >= options_.max_attempts) continue;
    ++waiting;
    if (job.state == JobPhase::kRunning) {
      options_.log({LogLevel::kInfo,
                    "starts again after a restart",
                    {{"job", job.id}, {"attempts", absl::StrCat(job.attempts)}}});
    }
    absl::MutexLock lock(&mutex_);
    QueueAgain(job);
  }
  if (waiting > 0) options_.log({LogLevel::kInfo, "jobs wait", {{"jobs", absl::StrCat(waiting)}}});
  return absl::OkStatus();
}

void JobRunner::QueueAgain(const JobRow& job) {
  ++in_flight_[job.owner];
  Enqueue(job, /*told=*/true);
}

void JobRunner::ClaimsLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (!stopping_) options_.threads->WaitFor(&claims_wanted_, &mutex_, options_.lease / 3);
      if (stopping_) return;
    }
    RenewClaims();
    TakeOverLapsed();
  }
}

void JobRunner::RenewClaims() {
  std::vector<std::shared_ptr<RunningJob>> jobs;
  std::vector<JobClaim> claims;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, job] : running_) {
      if (!job->claim.has_value()) continue;
      jobs.push_back(job);
      claims.push_back(*job->claim);
    }
  }
  if (claims.empty()) return;
  const absl::StatusOr<std::vector<bool>> held = store_->RenewJobs(claims, options_.lease);
  if (!held.ok()) {
    options_.log(
        {LogLevel::kError, "cannot renew the claims on jobs, trying again", {{"error", held.status().ToString()}}});
    return;
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    // A job that has ended meanwhile is nobody's either: then nothing reads this.
    if (!(*held)[i]) jobs[i]->lost = true;
  }
}

void JobRunner::TakeOverLapsed() {
  const absl::StatusOr<std::vector<JobRow>> lapsed = store_->LapsedJobs(claimant_);
  if (!lapsed.ok()) return;  // the next round sees them
  for (const JobRow& job : *lapsed) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      if (running_.count(job.id) > 0) continue;  // it is being claimed
      if (Dequeue(job.id).has_value()) CountOut(job.owner);
    }
    // One of those that see it gets it.
    const auto taken = store_->ClaimJob(job.id, claimant_, options_.lease, UnixMillisNow());
    if (!taken.ok() || !taken->has_value()) continue;
    BeginLog(job.id, TraceOf(job));
    options_.log({LogLevel::kWarning,
                  "takes over a job whose claimant is gone",
                  {{"job", job.id}, {"claimant", job.claimant}, {"attempts", absl::StrCat(job.attempts)}}});
    if (job.attempts >= options_.max_attempts) {
      (void)GiveUp(**taken);
      continue;
    }
    const v1::JobEvent again =
        MakeJobEvent(v1::QUEUED, "queued", "the server that compiled it is gone; the job starts again");
    // Where that fails it stays claimed, and is claimed anew when it has a place.
    if (store_->ReleaseJob((*taken)->claim(), again.SerializeAsString()).ok()) hub_.Notify(job.id);
    absl::MutexLock lock(&mutex_);
    QueueAgain(job);
  }
}

}  // namespace fusion
