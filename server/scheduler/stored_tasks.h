// StoredTasks: what the store has of a scheduler's tasks, and the calls (db/stores/task_calls.h) by which the store
// follows the scheduler. Pure: its owner makes the calls, and tells the answers.
//
// A lease has two ends. The scheduler's is that of its worker, who renews it with each heartbeat; the scheduler alone
// decides when it is over. The store's is longer, so that heartbeats cost no commits: it says from when on another
// scheduler may have the task if this one is gone. It is renewed for tasks that take longer than half of it.
#ifndef FUSION_SERVER_SCHEDULER_STORED_TASKS_H_
#define FUSION_SERVER_SCHEDULER_STORED_TASKS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "db/stores/task_calls.h"

namespace fusion {

class StoredTasks {
 public:
  static constexpr absl::Duration kLease = absl::Minutes(2);

  // The store has this unfinished row. `now` is that of the steady clock, here and below.
  void Restore(const TaskRow& row, absl::Time now);
  // Appends the calls after which the store's task is as `row` says. `accepted` is stored with a task that is done.
  // Between two calls of Follow for one task at most one claim of it ended, and at most one began.
  void Follow(const TaskRow& row, AcceptedRows accepted, absl::Time now, std::vector<TaskCall>* calls);
  // Appends the renewals that are due. Call it behind Follow for all that has changed.
  void Renew(absl::Time now, std::vector<TaskCall>* calls);

  // Answers of the store that were not expected: another scheduler has the same store.
  struct Surprises {
    // Claims that have other fences than those of the rows; nothing: the task is another's.
    std::map<std::string, std::optional<int64_t>> claims;  // by task
    std::set<std::string> refused;                         // tasks whose results were not taken
  };
  Surprises Take(absl::Span<const TaskCall> calls, absl::Span<const TaskAnswer> answers);

 private:
  struct Stored {
    TaskClaim claim;  // with the latest worker, also while nobody has the task
    bool leased = false;
    int attempts = 0;
    size_t evidence_bytes = 0;
    std::string payload_digest;
    absl::Time renew_at;

    TaskClaim Held() const { return {claim.task, leased ? claim.worker : "", claim.fence}; }
  };

  std::map<std::string, Stored> tasks_;  // those that are not final, by id
  absl::Time look_at_ = absl::InfinitePast();
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_STORED_TASKS_H_
