// ReadWatched: the next events of a job for one who watches it.
#ifndef FUSION_SERVER_JOBS_WATCHED_EVENTS_H_
#define FUSION_SERVER_JOBS_WATCHED_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/stores/store.h"

namespace fusion {

struct WatchedEvents {
  JobRow job;  // of the submission
  std::vector<JobEventRow> events;
};

// Reads at most `most` events of the job `runs_as` behind `last_seq`, and then the submission, so that this one says
// which of them are not its own if it has left the job since. Where the job is final and there are no events, there
// will be none. Fails like the store.
absl::StatusOr<WatchedEvents> ReadWatched(Store* store, const std::string& runs_as, const std::string& submission_id,
                                          int64_t last_seq, int most);

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_WATCHED_EVENTS_H_
