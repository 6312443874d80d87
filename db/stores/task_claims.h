// TaskClaims: which worker has which task, as a pure state machine. It is the specification of Store::CallTasks:
// task_claims_test holds SQLite's against it, and the store of the simulation is made of it. The scheduler decides who
// gets which task (server/scheduler/scheduler.h); this says which of such decisions hold, also if several schedulers
// make them.
//
// A task is queued, claimed or final. A claim has a worker, a fence that no earlier claim of any task had, and a lease.
// While the lease lasts nobody else gets the task. Afterwards the claim still holds until somebody else claims it.
//
// Times of leases are those of the machine's steady clock (job_claims.h).
#ifndef FUSION_DB_STORES_TASK_CLAIMS_H_
#define FUSION_DB_STORES_TASK_CLAIMS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "db/stores/task_calls.h"

namespace fusion {

// INVALID_ARGUMENT for a claim without a worker or with too long a lease, and for a failed attempt after which the task
// would be claimed or done, or that does not count and was nobody's.
absl::Status CheckCall(const TaskCall& call);

class TaskClaims {
 public:
  struct Task {
    TaskRow row;
    absl::Time lease_until;
  };

  // For calls that pass CheckCall. `now_ms` dates the row.
  TaskAnswer Call(const TaskCall& call, int64_t now_ms, absl::Time now);
  const TaskRow* Find(const std::string& id) const;
  const TaskRow* FindKey(const std::string& key) const;
  const std::vector<Task>& tasks() const { return tasks_; }  // in the order in which they were queued as new
  int64_t last_fence() const { return last_fence_; }
  const std::map<std::string, SourceRow>& sources() const { return sources_; }  // by name

 private:
  bool Do(const QueueTask& call, int64_t now_ms);
  bool Do(const ClaimTask& call, int64_t now_ms, absl::Time now);
  bool Do(const RenewTask& call, absl::Time now);
  bool Do(const CompleteTask& call, int64_t now_ms);
  bool Do(const FailTask& call, int64_t now_ms);
  Task* Held(const TaskClaim& claim);

  std::vector<Task> tasks_;
  int64_t last_fence_ = 0;
  std::map<std::string, SourceRow> sources_;
};

}  // namespace fusion

#endif  // FUSION_DB_STORES_TASK_CLAIMS_H_
