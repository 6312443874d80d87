// Which jobs a caller may see.
#ifndef FUSION_SERVER_JOBS_VISIBLE_JOBS_H_
#define FUSION_SERVER_JOBS_VISIBLE_JOBS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "db/stores/store.h"
#include "server/auth/guard.h"

namespace fusion {

// The owner to whose jobs the caller's view is limited. Administrators see all.
std::optional<std::string> OnlyOf(const Principal& principal);

// Others' jobs are like jobs that do not exist, so that nobody learns their names by trying.
absl::Status CheckMaySee(const Principal& principal, const JobRow& job);

// The job by the id of a submission (Store::FindSubmission), if the caller may see it. NOT_FOUND.
absl::StatusOr<JobRow> FindVisibleJob(Store& store, const Principal& principal, const std::string& job_id);

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_VISIBLE_JOBS_H_
