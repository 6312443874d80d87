#include "runtime/devices/cpu/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"
#include "runtime/devices/cpu/phase_barrier.h"
#include "runtime/devices/host_memory.h"

namespace fusion {
namespace {

// More ranges balance the threads better, and each costs a step of a counter. Tasks of one kernel take about equally
// long, those of unlike kernels do not.
constexpr int64_t kRangesPerThread = 4;
constexpr int64_t kRangesPerThreadOfParts = 16;
constexpr int64_t kCopyTaskBytes = 64 << 10;

// The ranges that a thread has left of a phase, in one word: the phase, how many ranges the thread itself has taken
// (from the front), and how many others have (from the back). Whoever finds an earlier phase there finds an untouched
// share, so nobody has to prepare it, whether its thread comes or not.
class Share {
 public:
  // Takes one of the `ranges` of this share in `phase`, and returns its index in the share; -1 if none is left.
  int TakeFront(uint64_t phase, int ranges) { return Take(phase, ranges, kFront); }
  int TakeBack(uint64_t phase, int ranges) { return Take(phase, ranges, kBack); }

 private:
  static constexpr int kBits = 8;  // of each count
  static constexpr uint64_t kMost = (1 << kBits) - 1, kFront = 1, kBack = 1 << kBits;
  static_assert(std::max(kRangesPerThread, kRangesPerThreadOfParts) <= static_cast<int64_t>(kMost));

  int Take(uint64_t phase, int ranges, uint64_t end) {
    uint64_t now = word_.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t at = now >> (2 * kBits);
      if (at > phase) return -1;  // the phase is over
      const uint64_t share = at == phase ? now : phase << (2 * kBits);
      const int front = static_cast<int>(share & kMost), back = static_cast<int>(share >> kBits & kMost);
      if (front + back >= ranges) return -1;
      if (word_.compare_exchange_weak(now, share + end, std::memory_order_relaxed)) {
        return end == kFront ? front : ranges - 1 - back;
      }
    }
  }

  std::atomic<uint64_t> word_{0};
};

// The state that each thread has of its own.
struct alignas(64) Slot {
  Share share;
  char* scratch = nullptr;
};

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
  std::vector<Slot> slots;
  std::optional<PhaseBarrier> barrier;
};

struct WorkerPool::Phase::Runner {
  State& pool;
  absl::Span<const Phase> phases;
  uint64_t first;  // the number of phases[0] at the barrier
  std::atomic<int> missing;

  static void RunRange(const Phase& phase, void* scratch, int64_t range) {
    RunTasks(phase, scratch, phase.RangeBegin(range), phase.RangeBegin(range + 1));
  }

  // Runs tasks [begin, end), counted over all parts one after another.
  static void RunTasks(const Phase& phase, void* scratch, int64_t begin, int64_t end) {
    int64_t first = 0;  // of the part
    for (const Part& part : phase.parts_) {
      const int64_t from = std::max(begin, first), to = std::min(end, first + part.all());
      if (from < to) RunTasksOf(part, scratch, from - first, to - first);
      first += part.all();
    }
  }

  // Runs tasks [begin, end), counted over all sets one after another.
  static void RunTasksOf(const Part& part, void* scratch, int64_t begin, int64_t end) {
    if (part.sets.size() == 1) return part.function(part.sets[0], scratch, begin, end);
    while (begin < end) {
      const int64_t set = begin / part.tasks, from = begin % part.tasks;
      const int64_t to = std::min(part.tasks, from + end - begin);
      part.function(part.sets[static_cast<size_t>(set)], scratch, from, to);
      begin += to - from;
    }
  }

  // Runs the thread's own ranges of a phase, then what others have left, and returns how many these were. A single
  // range is the caller's: whoever waits would take it sooner, but would have to fetch what the caller has in its
  // caches.
  int64_t RunShares(const Phase& phase, uint64_t number, int thread) {
    const auto share_begin = [&](int t) { return (phase.ranges_ * t + pool.threads - 1) / pool.threads; };
    void* const scratch = pool.slots[thread].scratch;
    int64_t count = 0;
    const int steps = phase.ranges_ == 1 ? 1 : pool.threads;
    for (int step = 0; step < steps; ++step) {
      const int owner = (thread + pool.threads - step) % pool.threads;
      const int64_t begin = share_begin(owner);
      const int ranges = static_cast<int>(share_begin(owner + 1) - begin);
      Share& share = pool.slots[owner].share;
      for (;; ++count) {
        const int taken = step == 0 ? share.TakeFront(number, ranges) : share.TakeBack(number, ranges);
        if (taken < 0) break;
        RunRange(phase, scratch, begin + taken);
      }
    }
    return count;
  }

  // A thread that comes late begins where the others are.
  void Run(int thread) {
    const ScopedSubnormals mode(pool.subnormals);
    missing.fetch_sub(1, std::memory_order_relaxed);
    const uint64_t end = first + phases.size();
    for (uint64_t number = pool.barrier->open(); number < end; number = pool.barrier->open()) {
      const Phase& phase = phases[number - first];
      pool.barrier->Add(number, RunShares(phase, number, thread), phase.ranges_);
      if (number + 1 == end) return;  // the end of the last phase is waited for in the team
      pool.barrier->Wait(number);
      if (thread == 0 && missing.load(std::memory_order_relaxed) > 0) pool.team->NoteMissing();
    }
  }
};

WorkerPool::WorkerPool(std::unique_ptr<State> state) : state_(std::move(state)) {}
WorkerPool::~WorkerPool() = default;

WorkerPool::Hold::Hold(WorkerPool& pool) : team_(*pool.state_->team) { team_.Enter(); }
WorkerPool::Hold::~Hold() { team_.Leave(); }

namespace {

std::atomic<char> new_scratch_byte = 0;

}  // namespace

void FillNewScratch(char byte) { new_scratch_byte = byte; }

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
  if (const char byte = new_scratch_byte; byte != 0) std::memset(state->scratch.data(), byte, pitch * threads);
  state->slots = std::vector<Slot>(threads);
  for (int i = 0; i < threads; ++i) state->slots[i].scratch = state->scratch.data() + pitch * i;
  if (pool == nullptr) pool = ThreadPool::OfProcess();
  ASSIGN_OR_RETURN(state->team, ThreadTeam::Create(std::move(pool), threads));
  state->barrier.emplace(state->team->spins());
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(state)));
}

WorkerPool::Phase WorkerPool::Cut(std::vector<Part> parts) const {
  Phase phase;
  for (const Part& part : parts) phase.all_ += part.all();
  const int64_t per_thread = parts.size() == 1 ? kRangesPerThread : kRangesPerThreadOfParts;
  phase.ranges_ = std::min<int64_t>(phase.all_, state_->threads * per_thread);
  phase.parts_ = std::move(parts);
  return phase;
}

void WorkerPool::Run(absl::Span<const Phase> phases) {
  State& s = *state_;
  if (s.threads == 1 || std::all_of(phases.begin(), phases.end(), [](const Phase& p) { return p.all_ == 1; })) {
    const ScopedSubnormals mode(s.subnormals);
    for (const Phase& phase : phases) Phase::Runner::RunTasks(phase, s.slots[0].scratch, 0, phase.all_);
    return;
  }
  Phase::Runner runner{s, phases, s.barrier->open(), s.threads};
  const bool alone = !s.team->entered();
  if (alone) s.team->Enter();
  s.team->RunWhoComes([](void* context, int thread) { static_cast<Phase::Runner*>(context)->Run(thread); }, &runner);
  if (alone) s.team->Leave();
}

void WorkerPool::Run(const Part& part) {
  if (part.all() <= 0) return;
  const Phase phase = Cut({part});
  Run({&phase, 1});
}

void WorkerPool::Copy(void* to, const void* from, int64_t size_bytes) {
  const auto *source = static_cast<const char*>(from), *target = static_cast<const char*>(to);
  const bool overlap = source < target + size_bytes && target < source + size_bytes;
  if (size_bytes < 4 * kCopyTaskBytes || overlap) {
    if (size_bytes > 0) std::memmove(to, from, static_cast<size_t>(size_bytes));
    return;
  }
  void* const args[] = {to, const_cast<void*>(from), &size_bytes};
  void* const* const sets[] = {args};
  Run({CopyTasks, sets, (size_bytes + kCopyTaskBytes - 1) / kCopyTaskBytes});
}

}  // namespace fusion
