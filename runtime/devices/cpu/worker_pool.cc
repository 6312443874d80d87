#include "runtime/devices/cpu/worker_pool.h"

#include <pthreadpool.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"
#include "runtime/devices/host_memory.h"

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer cannot see the barriers inside an uninstrumented pthreadpool; this tells it of the two that the
// library documents: a range begins after the call was made, and the call returns after every range.
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#define FUSION_TSAN_ACQUIRE(address) __tsan_acquire(address)
#define FUSION_TSAN_RELEASE(address) __tsan_release(address)
#else
#define FUSION_TSAN_ACQUIRE(address)
#define FUSION_TSAN_RELEASE(address)
#endif

namespace fusion {
namespace {

constexpr int64_t kRangesPerThread = 4;

struct alignas(64) Slot {
  std::atomic<bool> taken{false};
  char* scratch = nullptr;
};

struct PhaseRun {
  fusion_kernel_phase phase;
  absl::Span<void* const* const> sets;
  int64_t tasks, ranges;  // tasks of one set
  int threads;
  Subnormals subnormals;
  Slot* slots;
};

int64_t RangeBegin(const PhaseRun& run, int64_t range) {
  const auto all = static_cast<__int128>(run.tasks) * static_cast<int64_t>(run.sets.size());
  return static_cast<int64_t>(all * range / run.ranges);
}

// Of the tasks of all sets, one set after another.
void RunTasks(const PhaseRun& run, void* scratch, int64_t begin, int64_t end) {
  while (begin < end) {
    const int64_t set = begin / run.tasks, first = begin % run.tasks;
    const int64_t last = std::min(run.tasks, first + end - begin);
    run.phase(run.sets[static_cast<size_t>(set)], scratch, first, last);
    begin += last - first;
  }
}

// The library does not say which thread a range runs on. Of `threads` scratch areas at least one is free while fewer
// ranges than that are in flight; the search begins at the area of the thread that the range was meant for.
void RunRange(void* context, size_t range) {
  FUSION_TSAN_ACQUIRE(context);
  const PhaseRun& run = *static_cast<const PhaseRun*>(context);
  int slot = static_cast<int>(range * run.threads / run.ranges);
  while (run.slots[slot].taken.exchange(true, std::memory_order_acquire)) slot = (slot + 1) % run.threads;
  {
    const ScopedSubnormals mode(run.subnormals);
    const auto number = static_cast<int64_t>(range);
    RunTasks(run, run.slots[slot].scratch, RangeBegin(run, number), RangeBegin(run, number + 1));
  }
  run.slots[slot].taken.store(false, std::memory_order_release);
  FUSION_TSAN_RELEASE(context);
}

}  // namespace

struct WorkerPool::State {
  int threads = 1;
  Subnormals subnormals = Subnormals::kKept;
  pthreadpool_t pool = nullptr;
  HostMemory scratch;
  std::vector<Slot> slots;

  ~State() {
    if (pool != nullptr) pthreadpool_destroy(pool);
  }
};

WorkerPool::WorkerPool(std::unique_ptr<State> state) : state_(std::move(state)) {}
WorkerPool::~WorkerPool() = default;

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Create(int threads, int64_t scratch_bytes_per_thread,
                                                               Subnormals subnormals) {
  auto state = std::make_unique<State>();
  state->threads = threads;
  state->subnormals = subnormals;
  // A multiple of 4096 would put the same offset of every thread's area into the same cache sets.
  int64_t pitch =
      (scratch_bytes_per_thread + kBufferSlackBytes + kBufferAlignBytes - 1) / kBufferAlignBytes * kBufferAlignBytes;
  if (pitch % 4096 == 0) pitch += kBufferAlignBytes;
  ASSIGN_OR_RETURN(state->scratch, HostMemory::Allocate(pitch * threads, "kernel scratch"));
  state->slots = std::vector<Slot>(threads);
  for (int i = 0; i < threads; ++i) state->slots[i].scratch = state->scratch.data() + pitch * i;
  if (threads > 1) {
    state->pool = pthreadpool_create(threads);
    if (state->pool == nullptr) return absl::ResourceExhaustedError("cannot start the kernel threads");
  }
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(state)));
}

void WorkerPool::Run(fusion_kernel_phase phase, absl::Span<void* const* const> sets, int64_t tasks) {
  State& s = *state_;
  if (tasks <= 0) return;
  const int64_t all = tasks * static_cast<int64_t>(sets.size());
  const int64_t ranges = std::min<int64_t>(all, s.threads * kRangesPerThread);
  PhaseRun run{phase, sets, tasks, ranges, s.threads, s.subnormals, s.slots.data()};
  if (s.threads == 1 || all == 1) {
    const ScopedSubnormals mode(s.subnormals);
    return RunTasks(run, s.slots[0].scratch, 0, all);
  }
  FUSION_TSAN_RELEASE(&run);
  pthreadpool_parallelize_1d(s.pool, RunRange, &run, run.ranges, /*flags=*/0);
  FUSION_TSAN_ACQUIRE(&run);
}

}  // namespace fusion
