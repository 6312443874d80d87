// PhaseBarrier: keeps threads that work on the same sequence of phases from beginning a phase before the one in front
// of it has ended. It counts ranges of tasks that have been run, and not threads that have arrived: a thread that has
// no processor, or has not come at all, holds nobody up, and the others do its part.
#ifndef FUSION_RUNTIME_DEVICES_CPU_PHASE_BARRIER_H_
#define FUSION_RUNTIME_DEVICES_CPU_PHASE_BARRIER_H_

#include <atomic>
#include <cstdint>

namespace fusion {

// Phases are numbered from 0 over its whole life, so nothing is ever reset while a thread that is late may look at it.
class PhaseBarrier {
 public:
  // `spins`: every thread that waits has a processor of its own.
  explicit PhaseBarrier(bool spins) : spins_(spins) {}

  // The phase whose ranges may be run now. Stores of the phases before it are visible to the caller.
  uint64_t open() const { return open_.load(std::memory_order_acquire); }

  // The caller has run `ranges` of the `all` ranges of `phase`. Opens the next phase if these were the last.
  void Add(uint64_t phase, int64_t ranges, int64_t all) {
    if (ranges == 0) return;
    if (ranges != all) {
      if (run_.fetch_add(ranges, std::memory_order_acq_rel) + ranges != all) return;
      run_.store(0, std::memory_order_relaxed);  // nobody adds before the next phase is open
    }
    open_.store(phase + 1);
    if (sleepers_.load() > 0) open_.notify_all();
  }

  // Returns when `phase` has ended.
  void Wait(uint64_t phase);

 private:
  const bool spins_;
  // A thread that finds that it was the last has these in its cache already, where it stores what the others wait for.
  alignas(64) std::atomic<int64_t> run_{0};  // ranges of the open phase
  std::atomic<uint64_t> open_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_PHASE_BARRIER_H_
