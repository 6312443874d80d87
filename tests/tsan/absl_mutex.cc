// absl::Mutex and absl::CondVar on pthreads, for programs that ThreadSanitizer watches. The library that Debian builds
// says nothing to it, so that it reports a race wherever one of them is all that keeps threads apart. It knows what
// pthreads do. Tests of such a build link this file, whose definitions come before those of the shared library for the
// libraries that are linked, too.
//
// Readers exclude each other here, which changes no result and hides no race. Conditions are evaluated by the threads
// that wait for them, after each release of the mutex.
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "absl/base/internal/tsan_mutex_interface.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace {

struct Lock {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t released;
  int waiting = 0;  // for conditions; guarded by the mutex

  Lock() {
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&released, &steady);
    pthread_condattr_destroy(&steady);
  }
  ~Lock() {
    pthread_cond_destroy(&released);
    pthread_mutex_destroy(&mutex);
  }
  // Those that wait for a condition look again once the mutex is free.
  void Announce() {
    if (waiting > 0) pthread_cond_broadcast(&released);
  }
};

struct Signal {
  pthread_cond_t signalled;
  Signal() {
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&signalled, &steady);
    pthread_condattr_destroy(&steady);
  }
  ~Signal() { pthread_cond_destroy(&signalled); }
};

// Makes what stands behind the word of absl's object, which is 0 at first, also where a constructor never runs.
template <typename T>
T* Behind(std::atomic<intptr_t>& word) {
  intptr_t known = word.load(std::memory_order_acquire);
  if (known != 0) return reinterpret_cast<T*>(known);
  T* const made = new T;
  if (word.compare_exchange_strong(known, reinterpret_cast<intptr_t>(made), std::memory_order_acq_rel)) return made;
  delete made;  // another thread was first
  return reinterpret_cast<T*>(known);
}

template <typename T>
void Delete(std::atomic<intptr_t>& word) {
  delete reinterpret_cast<T*>(word.exchange(0, std::memory_order_acq_rel));
}

// Returns whether it was woken before the time. `end`: of CLOCK_MONOTONIC; null: never.
bool WaitOn(pthread_cond_t* condition, Lock* lock, const timespec* end) {
  if (end == nullptr) return pthread_cond_wait(condition, &lock->mutex) == 0;
  return pthread_cond_timedwait(condition, &lock->mutex, end) != ETIMEDOUT;
}

timespec After(absl::Duration timeout) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  timeout = timeout < absl::ZeroDuration() ? absl::ZeroDuration()
            : timeout > absl::Hours(1000)  ? absl::Hours(1000)
                                           : timeout;
  return absl::ToTimespec(absl::DurationFromTimespec(now) + timeout);
}

bool AwaitUntil(Lock* lock, const absl::Condition& condition, const timespec* end) {
  ++lock->waiting;
  bool in_time = true;
  while (!condition.Eval() && in_time) {
    lock->Announce();  // waiting releases the mutex, too
    in_time = WaitOn(&lock->released, lock, end);
  }
  --lock->waiting;
  return in_time || condition.Eval();
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() {
  ABSL_TSAN_MUTEX_DESTROY(this, __tsan_mutex_not_static);
  Delete<::Lock>(mu_);
}
void Mutex::Lock() { pthread_mutex_lock(&Behind<::Lock>(mu_)->mutex); }
void Mutex::Unlock() {
  auto* const lock = Behind<::Lock>(mu_);
  lock->Announce();
  pthread_mutex_unlock(&lock->mutex);
}
bool Mutex::TryLock() { return pthread_mutex_trylock(&Behind<::Lock>(mu_)->mutex) == 0; }
void Mutex::ReaderLock() { Lock(); }
void Mutex::ReaderUnlock() { Unlock(); }
bool Mutex::ReaderTryLock() { return TryLock(); }

void Mutex::Await(const Condition& cond) { AwaitUntil(Behind<::Lock>(mu_), cond, nullptr); }
bool Mutex::AwaitWithTimeout(const Condition& cond, absl::Duration timeout) {
  const timespec end = After(timeout);
  return AwaitUntil(Behind<::Lock>(mu_), cond, &end);
}
bool Mutex::AwaitWithDeadline(const Condition& cond, absl::Time deadline) {
  return AwaitWithTimeout(cond, deadline - absl::Now());
}
void Mutex::LockWhen(const Condition& cond) {
  Lock();
  Await(cond);
}
bool Mutex::LockWhenWithTimeout(const Condition& cond, absl::Duration timeout) {
  Lock();
  return AwaitWithTimeout(cond, timeout);
}
bool Mutex::LockWhenWithDeadline(const Condition& cond, absl::Time deadline) {
  return LockWhenWithTimeout(cond, deadline - absl::Now());
}
void Mutex::ReaderLockWhen(const Condition& cond) { LockWhen(cond); }
bool Mutex::ReaderLockWhenWithTimeout(const Condition& cond, absl::Duration timeout) {
  return LockWhenWithTimeout(cond, timeout);
}
bool Mutex::ReaderLockWhenWithDeadline(const Condition& cond, absl::Time deadline) {
  return LockWhenWithDeadline(cond, deadline);
}
void Mutex::AssertHeld() const {}
void Mutex::AssertReaderHeld() const {}
void Mutex::AssertNotHeld() const {}
void Mutex::ForgetDeadlockInfo() {}
void Mutex::EnableDebugLog(const char*) {}
void Mutex::EnableInvariantDebugging(void (*)(void*), void*) {}

CondVar::~CondVar() { Delete<::Signal>(cv_); }
void CondVar::Wait(Mutex* mutex) {
  auto* const lock = Behind<::Lock>(mutex->mu_);
  lock->Announce();
  WaitOn(&Behind<::Signal>(cv_)->signalled, lock, nullptr);
}
bool CondVar::WaitWithTimeout(Mutex* mutex, absl::Duration timeout) {
  const timespec end = After(timeout);
  auto* const lock = Behind<::Lock>(mutex->mu_);
  lock->Announce();
  return !WaitOn(&Behind<::Signal>(cv_)->signalled, lock, &end);
}
bool CondVar::WaitWithDeadline(Mutex* mutex, absl::Time deadline) {
  return WaitWithTimeout(mutex, deadline - absl::Now());
}
void CondVar::Signal() { pthread_cond_signal(&Behind<::Signal>(cv_)->signalled); }
void CondVar::SignalAll() { pthread_cond_broadcast(&Behind<::Signal>(cv_)->signalled); }
void CondVar::EnableDebugLog(const char*) {}

ABSL_NAMESPACE_END
}  // namespace absl
