// TaskCall: what is said to a store about the tasks of workers (Store::CallTasks). TaskClaims says what each does.
#ifndef FUSION_DB_STORES_TASK_CALLS_H_
#define FUSION_DB_STORES_TASK_CALLS_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "db/stores/rows.h"

namespace fusion {

// The right to end a task. Its worker "" is nobody: such a claim holds while the task is queued.
struct TaskClaim {
  std::string task = {};    // its id
  std::string worker = {};  // the id of the worker that does it
  int64_t fence = 0;        // rises with each claim of any task; 0: the task was never claimed
};

// The task is to be done. It replaces a final one with its id or its key; one that is queued under that id and key gets
// the row's payload, and keeps the rest. Refused while the key's task is claimed, or in flight under another id.
struct QueueTask {
  TaskRow row;
};
// The worker gets the task: one more attempt, under a new fence. Refused unless the task is queued, or claimed by a
// worker whose lease is over.
struct ClaimTask {
  std::string task, worker;
  absl::Duration lease;  // at most kLongestLease
};
// The next three are refused unless the claim holds.
struct RenewTask {
  TaskClaim claim;  // somebody's
  absl::Duration lease;
};
// The task is done, and what its result found out is stored. Rows of an attempt that are there already are skipped.
struct CompleteTask {
  TaskClaim claim;
  std::string worker;  // whose result it is: the claim's worker, or for nobody's claim one that had it before
  AcceptedRows rows;
};
// The attempt is over without a result.
struct FailTask {
  TaskClaim claim;
  TaskPhase then = TaskPhase::kQueued;  // or kPoisoned, or kCancelled
  bool counts = true;                   // false: it was none of the task's attempts
  std::string evidence = {};            // what is added to the task's
};

// The source is known as the row says from now on. It is never refused.
struct NoteSource {
  SourceRow row;
};

using TaskCall = std::variant<QueueTask, ClaimTask, RenewTask, CompleteTask, FailTask, NoteSource>;

struct TaskAnswer {
  bool held = false;  // false: the call was refused, and did nothing
  int64_t fence = 0;  // of a new claim
};

}  // namespace fusion

#endif  // FUSION_DB_STORES_TASK_CALLS_H_
