// Waiting without sleeping: waking a thread that sleeps takes some 5 to 50 µs. A thread that spins does not yield its
// processor either: the system would give it to any other program that wants it, for milliseconds.
#ifndef FUSION_RUNTIME_DEVICES_CPU_SPIN_H_
#define FUSION_RUNTIME_DEVICES_CPU_SPIN_H_

#include <chrono>

namespace fusion {

// How long threads spin within a run before they sleep: a phase of one task may lie between two of many.
inline constexpr std::chrono::microseconds kSpinInRun(1000);

// Tells the processor that this thread only waits.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns whether `done` came true before limit() was over; `limit` may change meanwhile.
template <typename Done, typename Limit>
bool Spin(const Done& done, const Limit& limit) {
  using Clock = std::chrono::steady_clock;
  constexpr int kPausesBetweenClocks = 32;
  for (int i = 0; i < kPausesBetweenClocks; ++i, Pause()) {
    if (done()) return true;
  }
  const Clock::time_point start = Clock::now();
  do {
    for (int i = 0; i < kPausesBetweenClocks; ++i, Pause()) {
      if (done()) return true;
    }
  } while (Clock::now() - start < limit());
  return done();
}

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_SPIN_H_
