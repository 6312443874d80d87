#include "server/jobs/visible_jobs.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {

std::optional<std::string> OnlyOf(const Principal& principal) {
  if (principal.roles.Has(Role::kAdmin)) return std::nullopt;
  return principal.OwnerName();
}

absl::Status CheckMaySee(const Principal& principal, const JobRow& job) {
  const std::optional<std::string> owner = OnlyOf(principal);
  if (!owner.has_value() || job.owner == *owner) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no job '", job.id, "'"));
}

absl::StatusOr<JobRow> FindVisibleJob(Store& store, const Principal& principal, const std::string& job_id) {
  ASSIGN_OR_RETURN(JobRow job, store.FindSubmission(job_id));
  RETURN_IF_ERROR(CheckMaySee(principal, job));
  return job;
}

}  // namespace fusion
