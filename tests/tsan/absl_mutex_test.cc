// ThreadSanitizer reports threads that nothing keeps apart, and none that absl::Mutex does.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace {
std::atomic<int> reports{0};
}  // namespace

// Called by ThreadSanitizer. The reports that this test provokes are no failures of the program.
extern "C" void __tsan_on_report(void*) { ++reports; }
extern "C" const char* __tsan_default_options() { return "exitcode=0"; }

namespace {

template <typename Work>
void InThreads(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(AbslMutex, AnUnguardedCounterIsReported) {
  const int before = reports;
  int64_t counter = 0;
  InThreads(2, [&](int) {
    volatile int64_t& racy = counter;
    for (int i = 0; i < 10000; ++i) racy = racy + 1;
  });
  EXPECT_GT(reports, before) << "no race would be seen";
}

TEST(AbslMutex, AGuardedCounterIsNot) {
  const int before = reports;
  absl::Mutex mutex;
  int64_t counter = 0;
  InThreads(4, [&](int thread) {
    for (int i = 0; i < 5000; ++i) {
      if (thread % 2 == 0) {
        absl::MutexLock lock(&mutex);
        ++counter;
      } else {
        while (!mutex.TryLock()) {
        }
        ++counter;
        mutex.Unlock();
      }
    }
  });
  absl::ReaderMutexLock lock(&mutex);
  EXPECT_EQ(counter, 20000);
  EXPECT_EQ(reports, before);
}

TEST(AbslMutex, WhatIsHandedOverByConditionsAndSignalsIsNot) {
  const int before = reports;
  absl::Mutex mutex;
  absl::CondVar taken;
  std::deque<std::vector<int>> queue;
  int64_t sum = 0, left = 4;
  const auto filled = [&] { return !queue.empty() || left == 0; };
  InThreads(8, [&](int thread) {
    if (thread < 4) {
      for (int i = 0; i < 500; ++i) {
        std::vector<int> item(10, 1);  // written here, read by the other
        absl::MutexLock lock(&mutex);
        while (queue.size() > 8) taken.WaitWithTimeout(&mutex, absl::Milliseconds(100));
        queue.push_back(std::move(item));
      }
      absl::MutexLock lock(&mutex);
      --left;
      return;
    }
    while (true) {
      std::vector<int> item;
      {
        mutex.LockWhen(absl::Condition(&filled));
        if (queue.empty()) return mutex.Unlock();
        item = std::move(queue.front());
        queue.pop_front();
        taken.SignalAll();
        mutex.Unlock();
      }
      int64_t own = 0;
      for (const int one : item) own += one;
      absl::MutexLock lock(&mutex);
      sum += own;
    }
  });
  EXPECT_EQ(sum, 20000);
  EXPECT_EQ(reports, before);
}

TEST(AbslMutex, WaitsEndWithTheirTime) {
  absl::Mutex mutex;
  absl::CondVar never;
  const bool no = false;
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&no), absl::Milliseconds(5)));
  EXPECT_FALSE(mutex.AwaitWithDeadline(absl::Condition(&no), absl::InfinitePast()));
  EXPECT_TRUE(never.WaitWithTimeout(&mutex, absl::Milliseconds(5)));
}

}  // namespace
