#include "runtime/devices/cpu/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
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
      (*pool)->Run({CountTasks, {args}, tasks});
      for (int64_t i = 0; i < tasks; ++i) EXPECT_EQ(counts[i], 1) << threads << " threads, task " << i;
      EXPECT_EQ(counts[tasks], 0);
      EXPECT_EQ(shared, 0);
    }
  }
}

// args[0]: the number of tasks in the range that begins at each task.
void NoteRange(void* const* args, void*, int64_t begin, int64_t end) {
  static_cast<std::atomic<int64_t>*>(args[0])[begin] = end - begin;
}

// args[0]: how many bytes of the scratch hold the byte args[1] before anything is written.
void CountBytes(void* const* args, void* scratch, int64_t, int64_t) {
  const auto* bytes = static_cast<const char*>(scratch);
  *static_cast<int64_t*>(args[0]) = std::count(bytes, bytes + kScratchBytes, *static_cast<const char*>(args[1]));
}

TEST(WorkerPoolTest, NewScratchHoldsWhatTestsAskFor) {
  for (const char byte : {'\xfe', '\0'}) {
    FillNewScratch(byte);
    auto pool = WorkerPool::Create(1, kScratchBytes);
    ASSERT_TRUE(pool.ok()) << pool.status();
    int64_t count = 0;
    char wanted = byte;
    void* args[] = {&count, &wanted};
    (*pool)->Run({CountBytes, {args}, 1});
    EXPECT_EQ(count, kScratchBytes);
  }
}

TEST(WorkerPoolTest, SharesDifferByAtMostOneTask) {
  for (const int threads : {2, 3, 8}) {
    auto pool = WorkerPool::Create(threads, 0);
    ASSERT_TRUE(pool.ok()) << pool.status();
    for (const int64_t tasks : {33, 34, 39, 46, 63, 100}) {
      std::vector<std::atomic<int64_t>> noted(tasks);
      void* args[] = {noted.data()};
      (*pool)->Run({NoteRange, {args}, tasks});
      std::vector<int64_t> ranges;  // in the order of their tasks
      for (int64_t begin = 0; begin < tasks; begin += ranges.back()) {
        ranges.push_back(noted[begin]);
        ASSERT_GT(ranges.back(), 0) << "no range begins at task " << begin;
      }
      ASSERT_EQ(ranges.size() % threads, 0u);
      for (size_t share = 0, each = ranges.size() / threads; share < ranges.size(); share += each) {
        int64_t sum = 0;
        for (size_t i = 0; i < each; ++i) sum += ranges[share + i];
        EXPECT_GE(sum, tasks / threads) << threads << " threads, " << tasks << " tasks";
        EXPECT_LE(sum, (tasks + threads - 1) / threads) << threads << " threads, " << tasks << " tasks";
      }
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
        (*pool)->Run({CountTasks, pointers, tasks});
        for (size_t s = 0; s < sets; ++s) {
          for (int64_t i = 0; i <= tasks; ++i) EXPECT_EQ(counts[s][i], i < tasks ? 1 : 0) << s << " " << i;
        }
        EXPECT_EQ(shared, 0);
      }
    }
  }
}

constexpr int64_t kTasks = 37;  // not a multiple of any number of threads below

// args[0], args[1]: kTasks numbers each. Stores there what the mirrored task of the phase before has stored, plus one.
// Tasks differ in length, so threads would leave each other behind.
void AddOneToMirrored(void* const* args, void* scratch, int64_t begin, int64_t end) {
  const auto* from = static_cast<const int64_t*>(args[0]);
  auto* to = static_cast<int64_t*>(args[1]);
  auto* mine = static_cast<volatile int64_t*>(scratch);
  for (int64_t task = begin; task < end; ++task) {
    for (int64_t i = 0; i < task * 8; ++i) *mine = i;
    to[task] = from[kTasks - 1 - task] + 1;
  }
}

// args[0], args[1]: as above. One task that does the same to all numbers.
void AddOneToAll(void* const* args, void*, int64_t, int64_t) {
  for (int64_t i = 0; i < kTasks; ++i) {
    static_cast<int64_t*>(args[1])[i] = static_cast<const int64_t*>(args[0])[kTasks - 1 - i] + 1;
  }
}

// Runs `phases` phases, each of which reads all that the phase before wrote, and returns how many numbers are wrong in
// the end. Every fifth phase has one task.
int WrongAfter(WorkerPool& pool, int phases) {
  std::array<std::array<int64_t, kTasks>, 2> numbers = {};
  void* const there[] = {numbers[0].data(), numbers[1].data()};
  void* const back[] = {numbers[1].data(), numbers[0].data()};
  void* const* const sets[] = {there, back};
  std::vector<WorkerPool::Phase> program;
  for (int p = 0; p < phases; ++p) {
    const bool one = p % 5 == 4;
    program.push_back(pool.Cut({{one ? AddOneToAll : AddOneToMirrored, {&sets[p % 2], 1}, one ? 1 : kTasks}}));
  }
  pool.Run(program);
  int wrong = 0;
  for (const int64_t number : numbers[phases % 2]) wrong += number != phases;
  return wrong;
}

TEST(WorkerPoolTest, APhaseBeginsWhenTheOneBeforeHasEnded) {
  for (const int threads : {1, 2, 3, 8, 40}) {
    auto pool = WorkerPool::Create(threads, kScratchBytes);
    ASSERT_TRUE(pool.ok()) << pool.status();
    for (int round = 0; round < 50; ++round) {
      for (const int phases : {1, 2, 3, 64}) ASSERT_EQ(WrongAfter(**pool, phases), 0) << threads << " threads";
    }
  }
}

// A phase of unlike parts: one of a single task, one with several sets, one of many tasks.
TEST(WorkerPoolTest, EveryTaskOfEveryPart) {
  for (const int threads : {1, 2, 3, 8}) {
    auto pool = WorkerPool::Create(threads, kScratchBytes);
    ASSERT_TRUE(pool.ok()) << pool.status();
    for (const int64_t many : {1, 7, 300}) {
      std::atomic<int> shared{0};
      std::vector<std::vector<std::atomic<int>>> counts;
      for (const int64_t tasks : {int64_t{1}, int64_t{5}, int64_t{5}, many}) {
        counts.emplace_back(static_cast<size_t>(tasks) + 1);
      }
      std::vector<std::array<void*, 2>> args;
      std::vector<void* const*> sets;
      for (std::vector<std::atomic<int>>& count : counts) args.push_back({count.data(), &shared});
      for (const std::array<void*, 2>& arg : args) sets.push_back(arg.data());
      const auto span = absl::MakeConstSpan(sets);
      const WorkerPool::Phase phase = (*pool)->Cut(
          {{CountTasks, span.subspan(0, 1), 1}, {CountTasks, span.subspan(1, 2), 5}, {CountTasks, span.subspan(3), many}});
      EXPECT_EQ(phase.tasks(), 11 + many);
      (*pool)->Run({&phase, 1});
      for (size_t c = 0; c < counts.size(); ++c) {
        for (size_t i = 0; i + 1 < counts[c].size(); ++i) EXPECT_EQ(counts[c][i], 1) << c << ", task " << i;
        EXPECT_EQ(counts[c].back(), 0);
      }
      EXPECT_EQ(shared, 0);
    }
  }
}

TEST(WorkerPoolTest, NoPhasesAreNoWork) {
  for (const int threads : {1, 2}) {
    auto pool = WorkerPool::Create(threads, kScratchBytes);
    ASSERT_TRUE(pool.ok()) << pool.status();
    (*pool)->Run(absl::Span<const WorkerPool::Phase>());
    EXPECT_EQ(WrongAfter(**pool, 5), 0);
  }
}

// Callers that share fewer threads than they ask for together, and that come and go.
TEST(WorkerPoolTest, ManyCallersOfOnePool) {
  const auto threads = ThreadPool::Create(4);
  ASSERT_TRUE(threads.ok()) << threads.status();
  std::atomic<int> wrong{0}, runs{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&, c] {
      for (int made = 0; made < 10; ++made) {
        auto pool = WorkerPool::Create(1 + c % 4, kScratchBytes, Subnormals::kKept, *threads);
        for (int round = 0; round < 20; ++round, ++runs) {
          std::optional<WorkerPool::Hold> hold;
          if (round % 2 == 0) hold.emplace(**pool);
          wrong += WrongAfter(**pool, 1 + round % 7);
          wrong += WrongAfter(**pool, 20);
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs, 1200);
  EXPECT_EQ(wrong, 0);
}

// args[0]: for each task the id of the thread that runs it.
void NoteThread(void* const* args, void* scratch, int64_t begin, int64_t end) {
  auto* mine = static_cast<volatile int64_t*>(scratch);
  for (int64_t task = begin; task < end; ++task) {
    for (int64_t i = 0; i < 1000; ++i) *mine = i;
    static_cast<std::thread::id*>(args[0])[task] = std::this_thread::get_id();
  }
}

// Between phases in which another thread takes part, too: that thread waits for the phase of one task, and could take
// it.
TEST(WorkerPoolTest, APhaseOfOneTaskIsTheCallers) {
  auto pool = WorkerPool::Create(2, kScratchBytes);
  ASSERT_TRUE(pool.ok()) << pool.status();
  std::array<std::thread::id, kTasks> many;
  std::thread::id one;
  void* const many_args[] = {many.data()};
  void* const one_args[] = {&one};
  void* const* const sets[] = {many_args, one_args};
  const WorkerPool::Phase many_phase = (*pool)->Cut({{NoteThread, {&sets[0], 1}, kTasks}});
  const WorkerPool::Phase one_phase = (*pool)->Cut({{NoteThread, {&sets[1], 1}, 1}});
  const WorkerPool::Phase alone[] = {one_phase, one_phase}, between[] = {many_phase, one_phase, many_phase};
  const std::thread::id caller = std::this_thread::get_id();
  int together = 0;
  for (int round = 0; round < 20000 && together < 200; ++round) {
    one = {};
    (*pool)->Run(round % 2 == 0 ? absl::MakeConstSpan(alone) : absl::MakeConstSpan(between));
    ASSERT_EQ(one, caller) << "round " << round;
    if (round % 2 == 1) together += std::count(many.begin(), many.end(), caller) < kTasks;
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
      (*pool)->Run({Halve, {args}, static_cast<int64_t>(halves.size())});
      for (const float half : halves) EXPECT_EQ(half != 0, mode == Subnormals::kKept) << threads << " threads";
      EXPECT_NE(subnormal * 0.5f, 0.0f) << "the caller's own arithmetic is as before";
    }
  }
}

}  // namespace
}  // namespace fusion
