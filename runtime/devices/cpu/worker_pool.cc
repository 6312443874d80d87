#include "runtime/devices/cpu/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"
#include "runtime/devices/host_memory.h"

namespace fusion {
namespace {

constexpr int64_t kRangesPerThread = 4;
constexpr int64_t kCopyTaskBytes = 64 << 10;

// A thread's scratch, and the ranges that it has left of the running phase.
struct alignas(64) Share {
  char* scratch = nullptr;
  std::atomic<int64_t> left{0};  // how many ranges nobody has claimed; a claim subtracts one
  int64_t front = 0;             // the next range that the thread itself takes
  std::atomic<int64_t> back{0};  // one past the next range that another thread takes

  bool Claim() {
    int64_t now = left.load(std::memory_order_relaxed);
    while (now > 0) {
      if (left.compare_exchange_weak(now, now - 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
};

struct PhaseRun {
  fusion_kernel_phase phase;
  absl::Span<void* const* const> sets;
  int64_t tasks, ranges;  // tasks: of one set
  int threads;
  Subnormals subnormals;
  Share* shares;
};

int64_t RangeBegin(const PhaseRun& run, int64_t range) {
  const auto all = static_cast<__int128>(run.tasks) * static_cast<int64_t>(run.sets.size());
  return static_cast<int64_t>(all * range / run.ranges);
}

// Runs tasks [begin, end), counted over all sets one after another.
void RunTasks(const PhaseRun& run, void* scratch, int64_t begin, int64_t end) {
  while (begin < end) {
    const int64_t set = begin / run.tasks, first = begin % run.tasks;
    const int64_t last = std::min(run.tasks, first + end - begin);
    run.phase(run.sets[static_cast<size_t>(set)], scratch, first, last);
    begin += last - first;
  }
}

// A thread claims a range before it takes one. So the threads take exactly as many ranges as there are, from both ends,
// and none twice.
void RunShares(void* context, int thread) {
  const PhaseRun& run = *static_cast<const PhaseRun*>(context);
  const ScopedSubnormals mode(run.subnormals);
  Share& mine = run.shares[thread];
  const auto run_range = [&](int64_t range) {
    RunTasks(run, mine.scratch, RangeBegin(run, range), RangeBegin(run, range + 1));
  };
  while (mine.Claim()) run_range(mine.front++);
  for (int step = 1; step < run.threads; ++step) {
    Share& other = run.shares[(thread + run.threads - step) % run.threads];
    while (other.Claim()) run_range(other.back.fetch_sub(1, std::memory_order_relaxed) - 1);
  }
}

// args: to, from, the size in bytes.
void CopyTasks(void* const* args, void*, int64_t begin, int64_t end) {
  const int64_t first = begin * kCopyTaskBytes;
  const int64_t last = std::min(*static_cast<const int64_t*>(args[2]), end * kCopyTaskBytes);
  std::memcpy(static_cast<char*>(args[0]) + first, static_cast<const char*>(args[1]) + first,
              static_cast<size_t>(last - first));
}

}  // namespace

struct WorkerPool::State {
  int threads = 1;
  Subnormals subnormals = Subnormals::kKept;
  std::unique_ptr<ThreadTeam> team;
  HostMemory scratch;
  std::vector<Share> shares;
};

WorkerPool::WorkerPool(std::unique_ptr<State> state) : state_(std::move(state)) {}
WorkerPool::~WorkerPool() = default;

WorkerPool::Hold::Hold(WorkerPool& pool) : team_(*pool.state_->team) { team_.Enter(); }
WorkerPool::Hold::~Hold() { team_.Leave(); }

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Create(int threads, int64_t scratch_bytes_per_thread,
                                                               Subnormals subnormals,
                                                               std::shared_ptr<ThreadPool> pool) {
  auto state = std::make_unique<State>();
  state->threads = threads;
  state->subnormals = subnormals;
  // A pitch that is a multiple of 4096 would map the same offset of all threads' areas to the same cache sets.
  int64_t pitch =
      (scratch_bytes_per_thread + kBufferSlackBytes + kBufferAlignBytes - 1) / kBufferAlignBytes * kBufferAlignBytes;
  if (pitch % 4096 == 0) pitch += kBufferAlignBytes;
  ASSIGN_OR_RETURN(state->scratch, HostMemory::Allocate(pitch * threads, "kernel scratch"));
  state->shares = std::vector<Share>(threads);
  for (int i = 0; i < threads; ++i) state->shares[i].scratch = state->scratch.data() + pitch * i;
  if (pool == nullptr) pool = ThreadPool::OfProcess();
  ASSIGN_OR_RETURN(state->team, ThreadTeam::Create(std::move(pool), threads));
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(state)));
}

void WorkerPool::Run(fusion_kernel_phase phase, absl::Span<void* const* const> sets, int64_t tasks) {
  State& s = *state_;
  if (tasks <= 0) return;
  const int64_t all = tasks * static_cast<int64_t>(sets.size());
  const int64_t ranges = std::min<int64_t>(all, s.threads * kRangesPerThread);
  PhaseRun run{phase, sets, tasks, ranges, s.threads, s.subnormals, s.shares.data()};
  if (s.threads == 1 || all == 1) {
    const ScopedSubnormals mode(s.subnormals);
    return RunTasks(run, s.shares[0].scratch, 0, all);
  }
  for (int64_t i = 0; i < s.threads; ++i) {
    Share& share = s.shares[i];
    share.front = ranges * i / s.threads;
    share.back.store(ranges * (i + 1) / s.threads, std::memory_order_relaxed);
    share.left.store(ranges * (i + 1) / s.threads - share.front, std::memory_order_relaxed);
  }
  const bool alone = !s.team->entered();
  if (alone) s.team->Enter();
  s.team->RunWhoComes(RunShares, &run);  // the caller takes over the ranges of threads that do not come
  if (alone) s.team->Leave();
}

void WorkerPool::Copy(void* to, const void* from, int64_t size_bytes) {
  const auto *source = static_cast<const char*>(from), *target = static_cast<const char*>(to);
  const bool overlap = source < target + size_bytes && target < source + size_bytes;
  if (size_bytes < 4 * kCopyTaskBytes || overlap) {
    if (size_bytes > 0) std::memmove(to, from, static_cast<size_t>(size_bytes));
    return;
  }
  void* const args[] = {to, const_cast<void*>(from), &size_bytes};
  Run(CopyTasks, {args}, (size_bytes + kCopyTaskBytes - 1) / kCopyTaskBytes);
}

}  // namespace fusion
