// Threads: how the scheduler's farm and the job runner start threads and wait. The service uses those of the machine;
// the simulation (server/simulation) runs the same code one step at a time, in an order that a seed decides.
#ifndef FUSION_SERVER_SCHEDULER_THREADS_H_
#define FUSION_SERVER_SCHEDULER_THREADS_H_

#include <functional>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_cond_var.h"

namespace fusion {

class Threads {
 public:
  class Thread {
   public:
    virtual ~Thread() = default;
    virtual void Join() = 0;  // once, before the object is destroyed
  };

  virtual ~Threads() = default;
  virtual std::unique_ptr<Thread> Start(std::function<void()> body) = 0;
  virtual void Sleep(absl::Duration duration) = 0;
  // Like changed->WaitFor(mutex, timeout).
  virtual void WaitFor(SteadyCondVar* changed, absl::Mutex* mutex, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
  // Like mutex->Await(condition).
  virtual void Await(absl::Mutex* mutex, const absl::Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
};

// Those of the machine. They live as long as the program.
Threads* SystemThreads();

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_THREADS_H_
