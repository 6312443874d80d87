#include "server/scheduler/task_queue.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

bool Any(const std::string&) { return true; }

class TaskQueueTest : public testing::Test {
 protected:
  // Tasks are named after their jobs: "a1", "a2".
  void Push(const std::string& job, int count = 1, const std::string& requirement = "cpu") {
    for (int i = 0; i < count; ++i) {
      const std::string task = absl::StrCat(job, ++pushed_[job]);
      place_[task] = {{job}, requirement, order_};
      queue_.Push(job, requirement, order_++, task);
    }
  }
  void Join(const std::string& task, const std::string& job) {
    Place& place = place_.at(task);
    place.jobs.push_back(job);
    queue_.Push(job, place.requirement, place.order, task);
  }
  std::string Take(const std::set<std::string>& requirements = {"cpu"},
                   absl::FunctionRef<bool(const std::string&)> may_run = Any) {
    const std::string task = queue_.Take(requirements, may_run);
    if (task.empty()) return task;
    const Place place = place_.at(task);
    place_.erase(task);
    for (const std::string& job : place.jobs) queue_.Remove(job, place.requirement, place.order);
    return task;
  }
  std::string TakeAll() {
    std::string all;
    for (std::string task = Take(); !task.empty(); task = Take()) absl::StrAppend(&all, all.empty() ? "" : " ", task);
    return all;
  }

  struct Place {
    std::vector<std::string> jobs;
    std::string requirement;
    int64_t order = 0;
  };
  TaskQueue queue_;
  int64_t order_ = 0;
  std::map<std::string, int> pushed_;
  std::map<std::string, Place> place_;
};

TEST_F(TaskQueueTest, JobsOfNobodyAreFirstComeFirstServed) {
  Push("a"), Push("b"), Push("a"), Push("c", 2), Push("b");
  EXPECT_EQ(TakeAll(), "a1 b1 a2 c1 c2 b2");
}

TEST_F(TaskQueueTest, OwnersTakeTurnsHoweverManyTasksEachHas) {
  queue_.SetJob("a", {"ann"}, 0), queue_.SetJob("b", {"bob"}, 0), queue_.SetJob("c", {"ann"}, 100);
  Push("a", 4), Push("b", 2), Push("c", 2);
  EXPECT_EQ(TakeAll(), "b1 c1 b2 c2 a1 a2 a3 a4") << "ann's priority is hers alone";
  Push("a", 3);
  EXPECT_EQ(Take(), "a5");
  Push("b", 3);
  EXPECT_EQ(TakeAll(), "b3 a6 b4 a7 b5") << "bob has no credit from before";
}

TEST_F(TaskQueueTest, PrioritiesOrderTheTasksOfAnOwner) {
  queue_.SetJob("low", {"ann"}, -1), queue_.SetJob("high", {"ann"}, 1);
  Push("low", 2), Push("mid", 1), Push("high", 2);
  queue_.SetJob("mid", {"ann"}, 0);
  EXPECT_EQ(Take(), "high1");
  queue_.SetJob("low", {"ann"}, 7);  // somebody joined it
  EXPECT_EQ(TakeAll(), "low1 low2 high2 mid1");
}

TEST_F(TaskQueueTest, NoTaskIsPassedMoreOftenThanTheBound) {
  queue_.SetJob("low", {"ann"}, 0), queue_.SetJob("high", {"ann"}, 9);
  Push("low", 2), Push("high", 100);
  int passed = 0;
  std::vector<int> waits;
  for (std::string task = Take(); waits.size() < 2; task = Take()) {
    ++passed;
    if (task[0] == 'l') waits.push_back(std::exchange(passed, 0));
  }
  EXPECT_EQ(waits, std::vector<int>(2, TaskQueue::kMostPassed + 1));
}

TEST_F(TaskQueueTest, ASharedTaskComesWithItsBestJobAndOnce) {
  queue_.SetJob("a", {"ann"}, 0), queue_.SetJob("b", {"bob"}, 0), queue_.SetJob("c", {"ann"}, 5);
  Push("a", 3), Push("b", 1), Push("c", 1);
  Join("a3", "b"), Join("a2", "c");
  EXPECT_EQ(Take(), "a2");  // ann's, by c's priority
  EXPECT_EQ(Take(), "a3");  // bob's, older than b1
  EXPECT_EQ(TakeAll(), "b1 c1 a1");
}

TEST_F(TaskQueueTest, ItKnowsWhatTheTasksRequire) {
  EXPECT_TRUE(queue_.empty());
  Push("a", 2), Push("b", 1, "cuda");
  Join("a1", "b");
  EXPECT_TRUE(queue_.Holds({"cpu", "tpu"}));
  EXPECT_FALSE(queue_.Holds({"tpu"}));
  EXPECT_EQ(Take({"cuda"}), "b1");
  EXPECT_FALSE(queue_.Holds({"cuda"}));
  EXPECT_EQ(TakeAll(), "a1 a2");
  EXPECT_FALSE(queue_.Holds({"cpu"}));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(TaskQueueTest, TasksThatTheWorkerCannotRunAreLeftInPlace) {
  Push("a", 2), Push("b", 1, "gpu"), Push("c", 1);
  EXPECT_EQ(Take({"gpu"}), "b1");
  EXPECT_EQ(Take({"gpu"}), "");
  EXPECT_EQ(Take({"cpu", "gpu"}, [](const std::string& task) { return task != "a1"; }), "a2");
  EXPECT_EQ(Take({}), "");
  EXPECT_EQ(TakeAll(), "a1 c1");
}

TEST_F(TaskQueueTest, AJobThatHasEndedIsForgotten) {
  queue_.SetJob("a", {"ann"}, 9);
  queue_.ForgetJob("a");
  queue_.ForgetJob("unknown");
  Push("b", 1), Push("a", 1);
  EXPECT_EQ(TakeAll(), "b1 a1");
}

TEST_F(TaskQueueTest, ATaskOfASharedJobIsAnEqualPartOfATurnOfEachOwner) {
  queue_.SetJob("both", {"bob", "ann", "bob"}, 0), queue_.SetJob("own", {"cal"}, 0);
  Push("both", 100), Push("own", 100);
  std::map<char, int> taken;
  for (int i = 0; i < 30; ++i) ++taken[Take()[0]];
  EXPECT_EQ(taken['b'], 20) << "ann and bob pay a half of each, so that each of the three has ten turns";
  EXPECT_EQ(taken['o'], 10);
  queue_.SetJob("both", {"ann"}, 0);  // bob has left it
  taken.clear();
  for (int i = 0; i < 30; ++i) ++taken[Take()[0]];
  EXPECT_EQ(taken['b'], 15);
  queue_.SetJob("own", {"cal", "dan", "eve"}, 0);  // two have joined it
  taken.clear();
  for (int i = 0; i < 40; ++i) ++taken[Take()[0]];
  EXPECT_NEAR(taken['o'], 30, 1);
}

TEST_F(TaskQueueTest, WhoSharesAJobHasPaidForIt) {
  queue_.SetJob("both", {"ann", "bob"}, 0), queue_.SetJob("a", {"ann"}, 0), queue_.SetJob("c", {"cal"}, 0);
  Push("both", 6), Push("a", 6), Push("c", 6);
  std::map<char, int> taken;
  for (int i = 0; i < 9; ++i) ++taken[Take()[0]];
  EXPECT_EQ(taken['b'], 6) << "three turns of bob's and three of ann's";
  EXPECT_EQ(taken['c'], 3) << "three turns of cal's";
  EXPECT_EQ(taken['a'], 0);
  for (int i = 0; i < 6; ++i) ++taken[Take()[0]];
  EXPECT_EQ(taken['a'], 3) << "bob has no tasks left";
  EXPECT_EQ(taken['c'], 6);
}

// Random jobs, priorities and workers against the promises: each task once, first in first out within a job for one
// requirement, turns of owners with tasks that could be taken at most two apart, and nobody passed too often.
TEST_F(TaskQueueTest, RandomOrdersKeepThePromises) {
  for (int seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const bool mixed = seed % 2 == 1;  // workers of two kinds: turns and passes count over both together
    const auto upto = [&](int n) { return static_cast<int>(random() % n); };
    queue_ = {}, order_ = 0, pushed_.clear(), place_.clear();
    const std::vector<std::string> jobs = {"a", "b", "c", "d", "e", "f"};
    std::map<std::string, std::set<std::string>> owners_of;
    const auto set_job = [&](const std::string& job) {
      queue_.SetJob(job, {owners_of[job].begin(), owners_of[job].end()}, upto(5) - 2);
    };
    const int most_owners = seed % 4 < 2 ? 1 : 3;
    for (const std::string& job : jobs) {
      for (int i = 1 + upto(most_owners); i > 0; --i) owners_of[job].insert(absl::StrCat("o", upto(4)));
      set_job(job);
    }
    std::map<std::string, int> passed;  // by task
    // By how many turns the second one is ahead, since the first one waits.
    std::map<std::string, std::map<std::string, double>> ahead;
    for (int step = 0; step < 400; ++step) {
      if (upto(3) == 0) {
        Push(jobs[upto(6)], 1 + upto(6), mixed && upto(4) == 0 ? "gpu" : "cpu");
        continue;
      }
      if (upto(10) == 0) set_job(jobs[0]);
      const std::map<std::string, Place> before = place_;
      const std::string requirement = mixed && upto(4) == 0 ? "gpu" : "cpu";
      const std::string task = Take({requirement});
      std::map<std::string, Place> could;
      for (const auto& [name, place] : before) {
        if (place.requirement == requirement) could[name] = place;
      }
      ASSERT_EQ(task.empty(), could.empty()) << "seed " << seed;
      if (task.empty()) continue;
      ASSERT_EQ(could.count(task), 1u) << "seed " << seed;
      const std::string job = could[task].jobs[0];
      const std::set<std::string>& owners = owners_of[job];
      std::map<std::string, int64_t> first;  // by job
      for (const auto& [name, place] : could) {
        const std::string& other = place.jobs[0];
        if (other == job) ASSERT_GE(place.order, could[task].order) << "seed " << seed << ": not the job's first";
        const auto known = first.try_emplace(other, place.order).first;
        known->second = std::min(known->second, place.order);
      }
      if (mixed) continue;
      for (const auto& [name, place] : could) {
        const std::string& other = place.jobs[0];
        if (owners_of[other] != owners || name == task || place.order != first[other]) continue;
        if (place.order < could[task].order) ++passed[name];
        // Jobs that are overdue together come one after another.
        ASSERT_LE(passed[name], TaskQueue::kMostPassed + static_cast<int>(jobs.size())) << "seed " << seed;
      }
      std::set<std::string> waiting;
      for (const auto& [name, place] : could) {
        waiting.insert(owners_of[place.jobs[0]].begin(), owners_of[place.jobs[0]].end());
      }
      std::erase_if(ahead, [&](const auto& one) { return waiting.count(one.first) == 0; });
      for (const std::string& one : waiting) {
        double least = 100;  // of those whose turn it may have been
        for (const std::string& owner : owners) {
          ahead[one][owner] += 1.0 / static_cast<double>(owners.size());
          if (owners.count(one) == 0) least = std::min(least, ahead[one][owner]);
        }
        if (owners.count(one) == 0) {
          ASSERT_LE(least, 2.001) << "seed " << seed << ": " << task << " while " << one << " waits";
          continue;
        }
        for (int i = 0; i < 4; ++i) ahead[one][absl::StrCat("o", i)] -= 1.0 / static_cast<double>(owners.size());
      }
    }
  }
}

}  // namespace
}  // namespace fusion
