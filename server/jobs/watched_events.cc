#include "server/jobs/watched_events.h"

#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<WatchedEvents> ReadWatched(Store* store, const std::string& runs_as, const std::string& submission_id,
                                          int64_t last_seq, int most) {
  WatchedEvents watched;
  ASSIGN_OR_RETURN(watched.events, store->JobEvents(runs_as, last_seq, most));
  ASSIGN_OR_RETURN(watched.job, store->FindSubmission(submission_id));
  // A job that ended between the two has its last event since then.
  if (watched.events.empty() && IsFinal(watched.job.state)) {
    ASSIGN_OR_RETURN(watched.events, store->JobEvents(runs_as, last_seq, most));
  }
  return watched;
}

}  // namespace fusion
