// Time that nobody sets: for leases, deadlines, sleeps and everything else that is a difference of two moments. The
// wall clock (absl::Now) jumps when an operator or NTP sets it; it is for dates that people read.
#ifndef FUSION_RUNTIME_BASE_STEADY_CLOCK_H_
#define FUSION_RUNTIME_BASE_STEADY_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace fusion {

// Only differences of its values mean something: they begin at an arbitrary moment.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

inline int64_t SteadyNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// SteadyNow, or a test's own. Thread-safe.
using SteadyClock = std::function<absl::Time()>;

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_STEADY_CLOCK_H_
