#include "runtime/base/fifo_semaphore.h"

namespace fusion {

void FifoSemaphore::Acquire(int permits) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (first_ == nullptr && permits <= free_) {
    free_ -= permits;
    return;
  }
  Waiter waiter{permits};
  (first_ == nullptr ? first_ : last_->next) = &waiter;
  last_ = &waiter;
  ++waiting_;
  waiter.wake.wait(lock, [&] { return waiter.served; });
}

void FifoSemaphore::Release(int permits) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_ += permits;
  while (first_ != nullptr && first_->permits <= free_) {
    Waiter& waiter = *first_;
    first_ = waiter.next;
    --waiting_;
    free_ -= waiter.permits;
    waiter.served = true;
    waiter.wake.notify_one();  // under the lock: the waiter is destroyed as soon as its thread has seen `served`
  }
}

int FifoSemaphore::waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_;
}

}  // namespace fusion
