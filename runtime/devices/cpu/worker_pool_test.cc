#include "runtime/devices/cpu/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

namespace fusion {
namespace {

constexpr int64_t kScratchBytes = 8192;

// args[0]: counts per task; args[1]: how often scratch was seen shared.
void CountTasks(void* const* args, void* scratch, int64_t begin, int64_t end) {
  auto* counts = static_cast<std::atomic<int>*>(args[0]);
  auto* shared = static_cast<std::atomic<int>*>(args[1]);
  auto* mine = static_cast<volatile int64_t*>(scratch);
  if (reinterpret_cast<uintptr_t>(scratch) % 64 != 0) ++*shared;
  for (int64_t task = begin; task < end; ++task) {
    for (int64_t i = 0; i < kScratchBytes / 8; ++i) mine[i] = task;
    for (int64_t i = 0; i < kScratchBytes / 8; ++i) *shared += mine[i] != task;
    ++counts[task];
  }
}

TEST(WorkerPoolTest, EveryTaskOnceWithScratchOfItsOwn) {
  for (const int threads : {1, 2, 3, 8}) {
    auto pool = WorkerPool::Create(threads, kScratchBytes);
    ASSERT_TRUE(pool.ok()) << pool.status();
    for (const int64_t tasks : {0, 1, 2, 3, 7, 8, 9, 33, 200}) {
      std::vector<std::atomic<int>> counts(tasks + 1);
      std::atomic<int> shared{0};
      void* args[] = {counts.data(), &shared};
      (*pool)->Run(CountTasks, args, tasks);
      for (int64_t i = 0; i < tasks; ++i) EXPECT_EQ(counts[i], 1) << threads << " threads, task " << i;
      EXPECT_EQ(counts[tasks], 0);
      EXPECT_EQ(shared, 0);
    }
  }
}

}  // namespace
}  // namespace fusion
