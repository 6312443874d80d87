#include "runtime/devices/cpu/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace fusion {
namespace {

using ::testing::HasSubstr;

struct Meeting {
  std::atomic<int> arrived{0};
  std::vector<std::thread::id> ids;

  explicit Meeting(int threads) : ids(threads) {}
};

// Returns once all threads of the team are here, so they run at the same time.
void Meet(void* context, int index) {
  auto* meeting = static_cast<Meeting*>(context);
  meeting->ids[index] = std::this_thread::get_id();
  meeting->arrived.fetch_add(1);
  while (meeting->arrived.load() < static_cast<int>(meeting->ids.size())) std::this_thread::yield();
}

std::vector<std::thread::id> IdsOf(ThreadTeam& team) {
  Meeting meeting(team.size());
  team.Enter();
  team.Run(Meet, &meeting);
  team.Leave();
  return meeting.ids;
}

TEST(ThreadPoolTest, TeamsOfOnePoolMeetTheSameThreads) {
  const auto pool = ThreadPool::Create(4);
  ASSERT_TRUE(pool.ok()) << pool.status();
  const auto four = ThreadTeam::Create(*pool, 4), also_four = ThreadTeam::Create(*pool, 4),
             two = ThreadTeam::Create(*pool, 2);
  const std::vector<std::thread::id> ids = IdsOf(**four);
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 4u);
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(IdsOf(**also_four), ids);
    EXPECT_EQ(IdsOf(**two), (std::vector<std::thread::id>{ids[0], ids[1]}));
    EXPECT_EQ(IdsOf(**four), ids);
  }
}

// The caller does the work of threads that do not come, and does not wait for them.
TEST(ThreadPoolTest, WhoDoesNotComeIsLeftOut) {
  const auto pool = ThreadPool::Create(4);
  const auto team = ThreadTeam::Create(*pool, 4);
  struct Work {
    std::atomic<int> left{0}, begun{0}, ended{0};
  };
  (*team)->Enter();
  for (int round = 0; round < 3000; ++round) {
    Work work;
    work.left = 8;
    (*team)->RunWhoComes(
        [](void* context, int) {
          auto* w = static_cast<Work*>(context);
          ++w->begun;
          while (w->left.fetch_sub(1) > 0) {
          }
          ++w->ended;
        },
        &work);
    ASSERT_LE(work.left, 0);
    ASSERT_GE(work.begun, 1);
    ASSERT_EQ(work.begun, work.ended) << "a thread is still at it, on memory that goes now";
  }
  (*team)->Leave();
}

// One pool of three: a team of two leaves room for a run of one thread at most, so teams of two take turns.
TEST(ThreadPoolTest, NoMoreRunThanThePoolHas) {
  const auto pool = ThreadPool::Create(3);
  ASSERT_TRUE(pool.ok()) << pool.status();
  std::atomic<int> running{0}, most{0};
  struct Counters {
    std::atomic<int>*running, *most;
  } counters{&running, &most};
  const auto count = [](void* context, int) {
    auto* c = static_cast<Counters*>(context);
    const int now = c->running->fetch_add(1) + 1;
    int before = c->most->load();
    while (now > before && !c->most->compare_exchange_weak(before, now)) {
    }
    std::this_thread::yield();
    c->running->fetch_sub(1);
  };
  std::vector<std::thread> callers;
  std::atomic<int> runs{0};
  for (int c = 0; c < 5; ++c) {
    callers.emplace_back([&, c] {
      const auto team = ThreadTeam::Create(*pool, 2 + c % 2);
      for (int round = 0; round < 200; ++round) {
        (*team)->Enter();
        (*team)->Run(count, &counters);
        (*team)->Run(count, &counters);
        (*team)->Leave();
        ++runs;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs, 1000);
  EXPECT_LE(most, 3);
}

// Whatever the order in which sessions are made, teams that fit together run at the same time.
TEST(ThreadPoolTest, TeamsThatFitRunTogether) {
  const auto pool = ThreadPool::Create(4);
  const auto one = ThreadTeam::Create(*pool, 2), other = ThreadTeam::Create(*pool, 2);
  Meeting meeting(4);
  const auto meet_low = [](void* context, int index) { Meet(context, index); };
  const auto meet_high = [](void* context, int index) { Meet(context, index + 2); };
  std::thread second([&] {
    (*other)->Enter();
    (*other)->Run(meet_high, &meeting);
    (*other)->Leave();
  });
  (*one)->Enter();
  (*one)->Run(meet_low, &meeting);
  (*one)->Leave();
  second.join();
  EXPECT_EQ(std::set<std::thread::id>(meeting.ids.begin(), meeting.ids.end()).size(), 4u);
}

TEST(ThreadPoolTest, ThePoolOfTheProcessGrowsAndEnds) {
  std::weak_ptr<ThreadPool> pool;
  {
    const auto first = ThreadPool::OfProcess();
    EXPECT_EQ(first, ThreadPool::OfProcess());
    EXPECT_EQ(first->threads(), UsableCpus());
    const auto large = ThreadTeam::Create(first, UsableCpus() + 3);
    ASSERT_TRUE(large.ok()) << large.status();
    EXPECT_EQ(first->threads(), UsableCpus() + 3);
    EXPECT_EQ(IdsOf(**large).size(), static_cast<size_t>(UsableCpus() + 3));
    pool = first;
  }
  EXPECT_TRUE(pool.expired());
}

TEST(ThreadPoolTest, AForkedProcessHasAPoolOfItsOwn) {
  const auto before = ThreadPool::OfProcess();
  const auto team = ThreadTeam::Create(before, 2);
  ASSERT_TRUE(team.ok()) << team.status();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a team of threads that did not survive would wait forever
    const auto own = ThreadTeam::Create(ThreadPool::OfProcess(), 2);
    _exit(own.ok() && ThreadPool::OfProcess() != before && IdsOf(**own).size() == 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadPoolTest, APoolOfTheCallersDoesNotGrow) {
  const auto pool = ThreadPool::Create(2);
  EXPECT_THAT(std::string(ThreadTeam::Create(*pool, 3).status().message()), HasSubstr("has 2 threads"));
  EXPECT_FALSE(ThreadPool::Create(0).ok());
  EXPECT_FALSE(ThreadPool::Create(1025).ok());
}

}  // namespace
}  // namespace fusion
