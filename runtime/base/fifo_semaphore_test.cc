#include "runtime/base/fifo_semaphore.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace fusion {
namespace {

TEST(FifoSemaphoreTest, NeverHandsOutMoreThanThereAre) {
  FifoSemaphore semaphore(3);
  std::atomic<int> taken{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const int permits = t % 3 + 1;
      for (int round = 0; round < 300; ++round) {
        semaphore.Acquire(permits);
        const int now = taken.fetch_add(permits) + permits;
        int before = most.load();
        while (now > before && !most.compare_exchange_weak(before, now)) {
        }
        taken.fetch_sub(permits);
        semaphore.Release(permits);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 3);
  EXPECT_EQ(taken, 0);
  semaphore.Acquire(3);  // all permits are back
}

// Returns the order in which threads that request these numbers of permits get them. One of the `all` permits is held
// until all threads wait.
std::vector<size_t> OrderOf(int all, const std::vector<int>& requests) {
  FifoSemaphore semaphore(all);
  semaphore.Acquire(1);
  std::mutex mutex;
  std::vector<size_t> order;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < requests.size(); ++t) {
    threads.emplace_back([&, t] {
      semaphore.Acquire(requests[t]);
      {
        const std::lock_guard<std::mutex> lock(mutex);
        order.push_back(t);
      }
      semaphore.Release(requests[t]);
    });
    while (semaphore.waiting() != static_cast<int>(t) + 1) std::this_thread::yield();
  }
  semaphore.Release(1);
  for (std::thread& thread : threads) thread.join();
  return order;
}

TEST(FifoSemaphoreTest, ServesInTheOrderOfArrival) {
  EXPECT_EQ(OrderOf(1, {1, 1, 1, 1, 1}), (std::vector<size_t>{0, 1, 2, 3, 4}));
}

// One permit is free, but the requests for one permit stay behind the request for two.
TEST(FifoSemaphoreTest, LargeRequestsAreNotOvertaken) {
  const std::vector<size_t> order = OrderOf(2, {2, 1, 1, 1});
  ASSERT_EQ(order.size(), 4u);
  EXPECT_EQ(order[0], 0u);
}

}  // namespace
}  // namespace fusion
