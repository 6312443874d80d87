// WorkerPool: runs one kernel phase on a fixed number of threads, each with scratch of its own.
#ifndef FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_
#define FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/devices/cpu/kernel_abi.h"
#include "runtime/devices/cpu/subnormals.h"

namespace fusion {

// One caller at a time.
class WorkerPool {
 public:
  // `threads` >= 1 counts the caller; with 1 no thread is ever started.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Create(int threads, int64_t scratch_bytes_per_thread,
                                                            Subnormals subnormals = Subnormals::kKept);
  ~WorkerPool();

  // Covers [0, tasks) for each set of arguments and returns when all are done. Tasks of all sets together are cut into
  // at most 4 ranges a thread, handed out statically, so that the same thread meets the same tasks (and weights) in
  // every run; a thread that has finished its own takes over ranges of a late one.
  void Run(fusion_kernel_phase phase, absl::Span<void* const* const> sets, int64_t tasks);

 private:
  struct State;
  explicit WorkerPool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_WORKER_POOL_H_
