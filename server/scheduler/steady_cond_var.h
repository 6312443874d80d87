// SteadyCondVar: absl::CondVar whose timed wait follows the steady clock. absl's own waits until a moment of the wall
// clock: set back by an hour, that moment comes an hour late.
#ifndef FUSION_SERVER_SCHEDULER_STEADY_COND_VAR_H_
#define FUSION_SERVER_SCHEDULER_STEADY_COND_VAR_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace fusion {

class SteadyCondVar {
 public:
  // Returns after a signal, after `timeout`, or for no reason.
  void WaitFor(absl::Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Lockable lockable{mutex};
    const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(1));
    condition_.wait_for(lockable, absl::ToChronoMicroseconds(bounded));
  }
  void Signal() {
    ++signals_;
    condition_.notify_one();
  }
  void SignalAll() {
    ++signals_;
    condition_.notify_all();
  }
  // How often it was signalled. For threads that are simulated and wait in their own way.
  uint64_t signals() const { return signals_; }

 private:
  struct Lockable {
    absl::Mutex* mutex;
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Unlock(); }
  };
  std::condition_variable_any condition_;
  std::atomic<uint64_t> signals_{0};
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_STEADY_COND_VAR_H_
