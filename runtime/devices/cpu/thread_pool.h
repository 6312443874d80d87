// ThreadPool: threads that sessions share. A run takes as many as it wants for as long as it lasts; runs that find too
// few free wait in the order of arrival. Sessions that take turns therefore meet the same threads, and no idle thread of
// one takes a processor from another.
#ifndef FUSION_RUNTIME_DEVICES_CPU_THREAD_POOL_H_
#define FUSION_RUNTIME_DEVICES_CPU_THREAD_POOL_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusion {

// CPUs that this process may use; at least 1.
int UsableCpus();

// Any thread.
class ThreadPool {
 public:
  // `threads` is how many run at once, callers included: one fewer are started. RESOURCE_EXHAUSTED if they do not
  // start.
  static absl::StatusOr<std::shared_ptr<ThreadPool>> Create(int threads);

  // The pool of the process: as large as UsableCpus, or as the largest team that was asked for. Threads are started
  // when a team reserves them. It ends with its last user, hence the shared pointer.
  static std::shared_ptr<ThreadPool> OfProcess();

  ~ThreadPool();  // joins the threads; no team is left
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

 private:
  friend class ThreadTeam;
  struct Worker;
  struct State;
  explicit ThreadPool(std::unique_ptr<State> state);
  absl::Status Reserve(int threads);

  std::unique_ptr<State> state_;
};

// A number of threads of a pool, the caller's among them. One caller at a time.
class ThreadTeam {
 public:
  // RESOURCE_EXHAUSTED if threads do not start; INVALID_ARGUMENT for more than a pool of a fixed size has. The team
  // holds no thread yet.
  static absl::StatusOr<std::unique_ptr<ThreadTeam>> Create(std::shared_ptr<ThreadPool> pool, int threads);

  int size() const { return size_; }
  // Whether its threads spin while they wait: each of them has a processor.
  bool spins() const { return spins_; }

  // Takes threads of the pool, and waits in line where too few are free; gives them back. Enter and Leave alternate.
  // A thread must not enter a team while it has entered another one of the same pool: it could wait for itself.
  void Enter();
  void Leave();
  bool entered() const { return entered_; }

  // Calls task(context, i) once for each i of [0, size()), at the same time, each on a thread of its own; 0 is the
  // caller's. Returns when all have returned. Between Enter and Leave.
  using Task = void (*)(void* context, int index);
  void Run(Task task, void* context);
  // The same, but threads that have not begun when task(context, 0) returns are left out. For tasks that do together
  // what there is to do: on a busy machine nobody then waits for a thread that has no processor.
  void RunWhoComes(Task task, void* context);
  // A long task calls this from thread 0 now and then: a thread that should have begun long ago may wait for the
  // caller's processor, and moves to another one.
  void NoteMissing();

 private:
  void RunAndWait(Task task, void* context, bool revokes);
  ThreadTeam(std::shared_ptr<ThreadPool> pool, int size);

  const std::shared_ptr<ThreadPool> pool_;  // shared with the other teams: the last one ends it
  const int size_;
  const bool spins_;
  bool entered_ = false;
  std::vector<ThreadPool::Worker*> workers_;  // size() - 1 while entered
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_THREAD_POOL_H_
