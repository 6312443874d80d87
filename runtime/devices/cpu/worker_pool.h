// WorkerPool: runs one kernel phase on a fixed number of threads, each with scratch of its own. The threads belong to a
// ThreadPool, which others use in between (thread_pool.h).
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

// One caller at a time may use it.
class WorkerPool {
 public:
  // `threads` >= 1 counts the caller; with 1 no other thread is ever used. A null `pool` means ThreadPool::OfProcess.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Create(int threads, int64_t scratch_bytes_per_thread,
                                                            Subnormals subnormals = Subnormals::kKept,
                                                            std::shared_ptr<ThreadPool> pool = nullptr);
  ~WorkerPool();

  // While it lives, the pool's threads are reserved for this WorkerPool, and phases start without waiting. Otherwise
  // each phase reserves the threads for itself.
  class Hold {
   public:
    explicit Hold(WorkerPool& pool);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    ThreadTeam& team_;
  };

  // Covers [0, tasks) for each set of arguments and returns when all are done. The tasks of all sets together are cut
  // into at most 4 ranges per thread, which are assigned statically, so that the same thread gets the same tasks (and
  // weights) in every run. A thread that has finished its own ranges takes over ranges of a slower one.
  void Run(fusion_kernel_phase phase, absl::Span<void* const* const> sets, int64_t tasks);

  // Does what memmove does. All threads take part if the size makes that worthwhile.
  void Copy(void* to, const void* from, int64_t size_bytes);

 private:
  struct State;
  explicit WorkerPool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_
