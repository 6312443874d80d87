// Accepts what workers deliver: the results of tasks, which nobody trusts.
#ifndef FUSION_SERVER_SCHEDULER_ACCEPT_RESULT_H_
#define FUSION_SERVER_SCHEDULER_ACCEPT_RESULT_H_

#include <string>

#include "absl/status/statusor.h"
#include "db/stores/store.h"
#include "server/artifacts/artifact_store.h"
#include "server/scheduler/farm.h"

namespace fusion {

// The ResultAcceptor of builds and of measurements. Parses the result, checks that it fits its task, stores binaries,
// and returns the rows that are to be stored with the end of the task, which the schema takes, and what they are judged
// by. Fails with
// UNAVAILABLE where the result does not fit, so that the task is tried again.
absl::StatusOr<Accepted> AcceptTaskResult(ArtifactStore& artifacts, const TaskRow& task, const std::string& payload,
                                          const std::string& result, const AttachedWorker& worker);

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_ACCEPT_RESULT_H_
