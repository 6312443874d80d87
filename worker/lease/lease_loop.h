// LeaseLoop: keeps calling Synchronize, runs the task that the server assigns, repeats its result until the server has
// accepted it, and stops a task that the server has given up. It survives any restart of the server: it repeats a
// failed call with growing, jittered pauses while the task continues.
#ifndef FUSION_WORKER_LEASE_LEASE_LOOP_H_
#define FUSION_WORKER_LEASE_LEASE_LOOP_H_

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "proto/worker_protocol.h"
#include "runtime/log/log.h"
#include "worker/executor/task_executor.h"
#include "worker/lease/job_lines.h"
#include "worker/lease/transport.h"

namespace fusion {

struct LeaseOptions {
  std::string worker_id;
  v1::WorkerInfo info;
  absl::Duration max_wait = absl::Milliseconds(kIdlePollMs);
  absl::Duration first_pause = absl::Milliseconds(200);  // after a failed call; doubled each time, ±50%
  // The longest with its jitter is kLongestReconnectPauseMs, within which the server keeps leases over a restart.
  absl::Duration longest_pause = absl::Milliseconds(kLongestReconnectPauseMs / 1.5);
  Log log = NoLog();
  std::shared_ptr<JobLines> lines = nullptr;  // for the server; null: none. Shared with the log that fills it
};

class LeaseLoop {
 public:
  // `transport` and `executor` must outlive it.
  LeaseLoop(LeaseOptions options, Transport* transport, TaskExecutor* executor);
  ~LeaseLoop();

  // Returns after Abort, or after Drain when the running task's result has been delivered, or the server refuses the
  // worker's token.
  void Run();

  // Any thread may call. Drain: takes no new task, finishes and delivers the running one. Abort: stops the task and
  // returns.
  void Drain();
  void Abort();

 private:
  struct Running;

  void Start(const v1::Task& task);
  void Stop();
  // Lines about the task go with the call, and once more if it fails.
  void AddLines(v1::SynchronizeRequest* request);
  void PutBackLines(v1::SynchronizeRequest* request);
  bool Aborted();
  bool Draining();
  // Sleeps for `duration`, or until the end of the running task, Drain or Abort. The wall clock has no part in it.
  void WaitFor(absl::Duration duration);

  const LeaseOptions options_;
  Transport* const transport_;
  TaskExecutor* const executor_;
  std::unique_ptr<Running> running_;  // used only by the thread in Run

  std::mutex mutex_;
  std::condition_variable changed_;
  bool draining_ = false;  // guarded by mutex_, like the next one
  bool aborted_ = false;
};

}  // namespace fusion

#endif  // FUSION_WORKER_LEASE_LEASE_LOOP_H_
