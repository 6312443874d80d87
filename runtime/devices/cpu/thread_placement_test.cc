#include "runtime/devices/cpu/thread_placement.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "runtime/devices/cpu/thread_pool.h"

namespace fusion {
namespace {

cpu_set_t Only(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return set;
}

// A thread that begins on the caller's processor, and shows where it runs.
class Runner {
 public:
  explicit Runner(const cpu_set_t& affinity) : thread_([this, affinity] { Main(affinity); }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Runner() {
    ends_ = true;
    thread_.join();
  }
  pid_t tid() const { return tid_; }
  int cpu() const { return cpu_; }

 private:
  void Main(const cpu_set_t& affinity) {
    sched_setaffinity(0, sizeof(affinity), &affinity);
    tid_ = gettid();
    while (!ends_) {
      cpu_ = CurrentCpu();
      std::this_thread::yield();
    }
  }
  std::atomic<pid_t> tid_{0};
  std::atomic<int> cpu_{-1};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

class ThreadPlacementTest : public ::testing::Test {
 protected:
  // The caller stays on one processor, so that "this processor" means the same throughout the test.
  ThreadPlacementTest() {
    sched_getaffinity(0, sizeof(before_), &before_);
    here_ = CurrentCpu();
    const cpu_set_t only_here = Only(here_);
    EXPECT_EQ(sched_setaffinity(0, sizeof(only_here), &only_here), 0);
  }
  ~ThreadPlacementTest() override { sched_setaffinity(0, sizeof(before_), &before_); }

  cpu_set_t before_;
  int here_;
};

TEST_F(ThreadPlacementTest, AThreadMovesAndKeepsItsAffinity) {
  if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "one processor";
  const Runner runner(before_);
  EXPECT_TRUE(MoveOffThisCpu(runner.tid()));
  // Wherever the system had placed it, it runs on another processor at some time from now on.
  while (runner.cpu() == here_ || runner.cpu() < 0) std::this_thread::yield();
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(runner.tid(), sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before_, &after));
}

TEST_F(ThreadPlacementTest, AThreadBoundToThisProcessorStays) {
  const Runner runner(Only(here_));
  EXPECT_FALSE(MoveOffThisCpu(runner.tid()));
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(runner.tid(), sizeof(after), &after), 0);
  const cpu_set_t only_here = Only(here_);
  EXPECT_TRUE(CPU_EQUAL(&only_here, &after));
}

TEST_F(ThreadPlacementTest, AThreadThatHasEndedIsAnAnswerNotACrash) {
  std::atomic<pid_t> tid{0};
  std::thread([&] { tid = gettid(); }).join();
  EXPECT_FALSE(MoveOffThisCpu(tid));
}

}  // namespace
}  // namespace fusion
