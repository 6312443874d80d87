// WorkerPool: runs one kernel phase on a fixed number of threads, each with scratch of its own. The threads are those of
// a pool that others use in between (thread_pool.h).
#ifndef FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_
#define FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/devices/cpu/kernel_abi.h"
#include "runtime/devices/cpu/subnormals.h"
#include "runtime/devices/cpu/thread_pool.h"

namespace fusion {

// One caller at a time.
class WorkerPool {
 public:
  // `threads` >= 1 counts the caller; with 1 no thread is ever used. `pool`: null means ThreadPool::OfProcess.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Create(int threads, int64_t scratch_bytes_per_thread,
                                                            Subnormals subnormals = Subnormals::kKept,
                                                            std::shared_ptr<ThreadPool> pool = nullptr);
  ~WorkerPool();

  // While it lives, the pool's threads stand by for this one: phases start without waiting in line. Without it each
  // phase takes the threads for itself.
  class Hold {
   public:
    explicit Hold(WorkerPool& pool);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    ThreadTeam& team_;
  };

  // Covers [0, tasks) for each set of arguments and returns when all are done. Tasks of all sets together are cut into
  // at most 4 ranges a thread, handed out statically, so that the same thread meets the same tasks (and weights) in
  // every run; a thread that has finished its own takes over ranges of a late one.
  void Run(fusion_kernel_phase phase, absl::Span<void* const* const> sets, int64_t tasks);

  // memmove, by all threads where that pays.
  void Copy(void* to, const void* from, int64_t size_bytes);

 private:
  struct State;
  explicit WorkerPool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_
