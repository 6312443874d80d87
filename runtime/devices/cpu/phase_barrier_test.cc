#include "runtime/devices/cpu/phase_barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace fusion {
namespace {

TEST(PhaseBarrierTest, TheLastRangeOpensTheNextPhase) {
  PhaseBarrier barrier(/*spins=*/true);
  EXPECT_EQ(barrier.open(), 0u);
  barrier.Add(0, 2, 3);
  barrier.Add(0, 0, 3);
  EXPECT_EQ(barrier.open(), 0u);
  barrier.Add(0, 1, 3);
  EXPECT_EQ(barrier.open(), 1u);
  barrier.Wait(0);
  // The count begins again.
  barrier.Add(1, 2, 3);
  EXPECT_EQ(barrier.open(), 1u);
  barrier.Add(1, 1, 3);
  EXPECT_EQ(barrier.open(), 2u);
  // Who runs everything needs nobody.
  barrier.Add(2, 3, 3);
  EXPECT_EQ(barrier.open(), 3u);
  barrier.Wait(1);
  barrier.Wait(2);
}

// Threads that wait do not add to the phase, and are let go however long they wait: spinning or asleep.
TEST(PhaseBarrierTest, WakesWhoWaits) {
  for (const bool spins : {true, false}) {
    PhaseBarrier barrier(spins);
    constexpr uint64_t kPhases = 300;
    std::vector<std::thread> waiters;
    for (int w = 0; w < 4; ++w) {
      waiters.emplace_back([&] {
        for (uint64_t phase = 0; phase < kPhases; ++phase) barrier.Wait(phase);
      });
    }
    for (uint64_t phase = 0; phase < kPhases; ++phase) {
      if (phase % 3 == 0) std::this_thread::yield();
      barrier.Add(phase, 1, 1);
    }
    for (std::thread& waiter : waiters) waiter.join();
  }
}

// Every thread runs one range of every phase, so none may be ahead of another by a phase.
TEST(PhaseBarrierTest, ShowsWhatEarlierPhasesStored) {
  for (const bool spins : {true, false}) {
    constexpr int kThreads = 3, kPhases = 100;
    PhaseBarrier barrier(spins);
    std::vector<int> stored(kThreads * 16);  // plain memory: a race is an error under ThreadSanitizer
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int phase = 0; phase < kPhases; phase += 2) {
          stored[t * 16] = phase;
          barrier.Add(phase, 1, kThreads);
          barrier.Wait(phase);
          for (int other = 0; other < kThreads; ++other) wrong += stored[other * 16] != phase;
          barrier.Add(phase + 1, 1, kThreads);
          barrier.Wait(phase + 1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(barrier.open(), static_cast<uint64_t>(kPhases));
  }
}

}  // namespace
}  // namespace fusion
