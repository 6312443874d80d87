#include "runtime/devices/cpu/worker_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

namespace fusion {
namespace {

constexpr int64_t kScratchBytes = 8192;

// args[0]: how often each task ran; args[1]: how often two ranges were seen to share scratch.
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
      (*pool)->Run(CountTasks, {args}, tasks);
      for (int64_t i = 0; i < tasks; ++i) EXPECT_EQ(counts[i], 1) << threads << " threads, task " << i;
      EXPECT_EQ(counts[tasks], 0);
      EXPECT_EQ(shared, 0);
    }
  }
}

TEST(WorkerPoolTest, EveryTaskOfEverySet) {
  for (const int threads : {1, 2, 3, 8}) {
    auto pool = WorkerPool::Create(threads, kScratchBytes);
    ASSERT_TRUE(pool.ok()) << pool.status();
    for (const int64_t tasks : {0, 1, 2, 7, 33}) {
      for (const size_t sets : {1, 2, 5, 40}) {
        std::vector<std::vector<std::atomic<int>>> counts(sets);
        std::atomic<int> shared{0};
        std::vector<std::array<void*, 2>> args(sets);
        std::vector<void* const*> pointers;
        for (size_t s = 0; s < sets; ++s) {
          counts[s] = std::vector<std::atomic<int>>(tasks + 1);
          args[s] = {counts[s].data(), &shared};
          pointers.push_back(args[s].data());
        }
        (*pool)->Run(CountTasks, pointers, tasks);
        for (size_t s = 0; s < sets; ++s) {
          for (int64_t i = 0; i <= tasks; ++i) EXPECT_EQ(counts[s][i], i < tasks ? 1 : 0) << s << " " << i;
        }
        EXPECT_EQ(shared, 0);
      }
    }
  }
}

// args[0]: a subnormal number; args[1]: for each task, half of that number.
void Halve(void* const* args, void*, int64_t begin, int64_t end) {
  for (int64_t task = begin; task < end; ++task) {
    static_cast<float*>(args[1])[task] = *static_cast<volatile float*>(args[0]) * 0.5f;
  }
}

TEST(WorkerPoolTest, SubnormalsCountAsZeroWhereThatIsAsked) {
  volatile float subnormal = 1e-40f;
  for (const int threads : {1, 4}) {
    for (const Subnormals mode : {Subnormals::kKept, Subnormals::kZero}) {
      auto pool = WorkerPool::Create(threads, kScratchBytes, mode);
      ASSERT_TRUE(pool.ok()) << pool.status();
      std::vector<float> halves(32, 1);
      void* args[] = {const_cast<float*>(&subnormal), halves.data()};
      (*pool)->Run(Halve, {args}, static_cast<int64_t>(halves.size()));
      for (const float half : halves) EXPECT_EQ(half != 0, mode == Subnormals::kKept) << threads << " threads";
      EXPECT_NE(subnormal * 0.5f, 0.0f) << "the caller's own arithmetic is as before";
    }
  }
}

}  // namespace
}  // namespace fusion
