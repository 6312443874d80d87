#include "server/jobs/fair_queue.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

std::string PopAll(FairQueue* queue) {
  std::string order;
  while (!queue->empty()) absl::StrAppend(&order, order.empty() ? "" : " ", queue->Pop().job);
  return order;
}

TEST(FairQueueTest, OwnersTakeTurnsHoweverManyJobsEachHas) {
  FairQueue queue;
  for (const char* job : {"a1", "a2", "a3", "a4"}) queue.Push("a", job);
  queue.Push("b", "b1");
  queue.Push("c", "c1");
  queue.Push("b", "b2");
  EXPECT_EQ(PopAll(&queue), "a1 b1 c1 a2 b2 a3 a4");
}

TEST(FairQueueTest, AnOwnerAloneIsServedInOrder) {
  FairQueue queue;
  for (const char* job : {"1", "2", "3"}) queue.Push("", job);
  EXPECT_EQ(queue.Remove("2")->owner, "");
  EXPECT_FALSE(queue.Remove("nobody's").has_value());
  EXPECT_EQ(PopAll(&queue), "1 3");
}

TEST(FairQueueTest, WhoWasIdleGetsNoCredit) {
  FairQueue queue;
  for (int i = 0; i < 10; ++i) queue.Push("a", absl::StrCat("a", i));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(queue.Pop().job, absl::StrCat("a", i));
  for (const char* job : {"b0", "b1", "b2"}) queue.Push("b", job);
  EXPECT_EQ(PopAll(&queue), "b0 a5 b1 a6 b2 a7 a8 a9") << "b's turns begin now, not when the queue began";
}

TEST(FairQueueTest, PrioritiesOrderAnOwnersOwnJobsAlone) {
  FairQueue queue;
  queue.Push("a", "a low", -10);
  queue.Push("a", "a normal");
  queue.Push("a", "a high", 10);
  queue.Push("a", "a high too", 10);
  queue.Push("b", "b low", -10);
  queue.Push("b", "b low too", -10);
  EXPECT_EQ(PopAll(&queue), "a high b low a high too b low too a normal a low");
}

TEST(FairQueueTest, APriorityCanChangeWhileTheJobWaits) {
  FairQueue queue;
  queue.Push("a", "1");
  queue.Push("a", "2", 5);
  queue.Push("a", "3");
  queue.SetPriority("3", 10);
  queue.SetPriority("2", -1);
  queue.SetPriority("nobody's", 100);
  EXPECT_EQ(PopAll(&queue), "3 1 2");
}

TEST(FairQueueTest, WhoRemovesAJobKeepsHisPlaceAmongTheOwners) {
  FairQueue queue;
  for (const char* job : {"a1", "a2", "a3"}) queue.Push("a", job);
  for (const char* job : {"b1", "b2", "b3"}) queue.Push("b", job);
  EXPECT_TRUE(queue.Remove("a1").has_value());
  EXPECT_EQ(PopAll(&queue), "a2 b1 a3 b2 b3");
}

TEST(FairQueueTest, NoJobStarves) {
  FairQueue queue;
  queue.Push("a", "low", -10);
  queue.Push("a", "lowest", -20);
  int pops = 0;
  for (int i = 0, seen = 0; seen < 2; ++i) {
    queue.Push("a", absl::StrCat("high", i), 10);
    const std::string job = queue.Pop().job;
    ++pops;
    if (job != "low" && job != "lowest") continue;
    ++seen;
    EXPECT_EQ(job, seen == 1 ? "low" : "lowest") << "in the order in which they came";
  }
  EXPECT_EQ(pops, FairQueue::kMostPassed + 2);
}

// The definition: while two owners both wait, neither gets more than one job ahead of the other.
TEST(FairQueueTest, NoOwnerGetsAheadByMoreThanAJobWhileAnotherWaits) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    FairQueue queue;
    std::map<char, int> waiting, served;
    for (int step = 0; step < 200; ++step) {
      const char owner = static_cast<char>('a' + random() % 3);
      if (random() % 2 == 0 || queue.empty()) {
        if (waiting[owner]++ == 0) served.clear();  // someone begins to wait: count from here
        queue.Push(std::string(1, owner), absl::StrCat(std::string(1, owner), step));
        continue;
      }
      const char got = queue.Pop().job[0];
      ++served[got];
      if (--waiting[got] == 0) served.clear();
      for (const auto& [one, jobs] : waiting) {
        for (const auto& [other, more] : waiting) {
          if (jobs > 0 && more > 0) EXPECT_LE(served[one] - served[other], 2) << trial << " " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fusion
