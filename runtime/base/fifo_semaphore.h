// FifoSemaphore: a number of permits that are handed out in the order of the requests. A request for many permits is
// not overtaken by requests for few, so no thread waits forever.
#ifndef FUSION_RUNTIME_BASE_FIFO_SEMAPHORE_H_
#define FUSION_RUNTIME_BASE_FIFO_SEMAPHORE_H_

#include <condition_variable>
#include <mutex>

namespace fusion {

// Any thread may call. Waiting threads sleep.
class FifoSemaphore {
 public:
  explicit FifoSemaphore(int permits) : free_(permits) {}
  FifoSemaphore(const FifoSemaphore&) = delete;
  FifoSemaphore& operator=(const FifoSemaphore&) = delete;

  // Waits until all earlier requests have been served and `permits` are free. If `permits` exceeds all permits that
  // there are, this call and all later ones wait forever.
  void Acquire(int permits);
  // Gives permits back, or adds new ones.
  void Release(int permits);

  int waiting() const;

 private:
  struct Waiter {
    int permits;
    bool served = false;
    Waiter* next = nullptr;
    std::condition_variable wake = {};
  };

  mutable std::mutex mutex_;
  int free_;                 // under mutex_
  Waiter* first_ = nullptr;  // under mutex_: a list of waiters, each on its own thread's stack
  Waiter* last_ = nullptr;   // under mutex_; meaningless while first_ is null
  int waiting_ = 0;          // under mutex_
};

// A mutex that threads get in the order in which they asked.
class FifoMutex {
 public:
  void lock() { semaphore_.Acquire(1); }
  void unlock() { semaphore_.Release(1); }

 private:
  FifoSemaphore semaphore_{1};
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_FIFO_SEMAPHORE_H_
