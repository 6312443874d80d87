// WorkerPool: runs phases of kernels on a fixed number of threads, each with scratch of its own. The threads belong to
// a ThreadPool, which others use in between (thread_pool.h).
#ifndef FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_
#define FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/devices/cpu/kernel_abi.h"
#include "runtime/devices/cpu/subnormals.h"
#include "runtime/devices/cpu/thread_pool.h"

namespace fusion {

// For tests: scratch of pools that are made from now on holds this byte everywhere at first, not zeros, so that what a
// kernel reads before it has written it shows.
void FillNewScratch(char byte);

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

  // The tasks of one kernel: `tasks` >= 1 for each of the `sets` of arguments, which must outlive it.
  struct Part {
    fusion_kernel_phase function = nullptr;
    absl::Span<void* const* const> sets;
    int64_t tasks = 0;

    int64_t all() const { return tasks * static_cast<int64_t>(sets.size()); }
  };

  // Parts that do not depend on each other, and how their tasks are cut. The tasks of all parts together are cut into
  // ranges, which are assigned statically, so that the same thread gets the same tasks (and weights) in every run.
  class Phase {
   public:
    int64_t tasks() const { return all_; }  // of all sets of all parts

   private:
    friend class WorkerPool;
    struct Runner;
    // Longer ranges lie among the shorter ones, so that the threads' shares differ by at most one task.
    int64_t RangeBegin(int64_t range) const { return all_ * range / ranges_; }

    std::vector<Part> parts_;
    int64_t all_ = 0, ranges_ = 0;
  };
  // There is at least one part.
  Phase Cut(std::vector<Part> parts) const;

  // Runs the phases one after another: all tasks of one have returned before the first of the next begins. A thread
  // that has finished its own ranges of a phase takes over ranges of a slower one. The threads are called once,
  // and wait for the end of each phase at a PhaseBarrier.
  void Run(absl::Span<const Phase> phases);
  // The same for one phase, which may have no tasks.
  void Run(const Part& part);

  // Does what memmove does. All threads take part if the size makes that worthwhile.
  void Copy(void* to, const void* from, int64_t size_bytes);

 private:
  struct State;
  explicit WorkerPool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_
