// Accepts what workers deliver: the results of tasks, which nobody trusts.
#ifndef FUSION_SERVER_SCHEDULER_ACCEPT_RESULT_H_
#define FUSION_SERVER_SCHEDULER_ACCEPT_RESULT_H_

#include <string>

#include "absl/status/status.h"
#include "db/stores/store.h"
#include "server/artifacts/artifact_store.h"
#include "server/scheduler/farm.h"

namespace fusion {

// The ResultAcceptor of builds and of measurements. Parses the result, checks that it fits its task, and stores
// measurements and binaries. Fails with UNAVAILABLE where it does not fit, so that the task is tried again.
absl::Status AcceptTaskResult(Store& store, ArtifactStore& artifacts, const TaskRow& task, const std::string& result,
                              const AttachedWorker& worker);

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_ACCEPT_RESULT_H_
