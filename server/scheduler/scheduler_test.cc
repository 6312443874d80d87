#include "server/scheduler/scheduler.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class SchedulerTest : public testing::Test {
 protected:
  std::string Add(const std::string& key, TaskType kind = TaskType::kMeasure) {
    TaskRow row;
    row.key = key, row.kind = kind, row.device_kind = "cpu", row.requirement = "measure:cpu";
    return scheduler_.Add(row, now_);
  }
  void Seen(const std::string& worker, bool draining = false) {
    scheduler_.Seen(worker, {"measure:cpu"}, draining, now_);
  }
  TaskPhase State(const std::string& id) { return scheduler_.Find(id)->state; }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  Scheduler scheduler_{{}, 100};
};

TEST_F(SchedulerTest, FirstComeFirstServedUnderRisingFences) {
  const std::string a = Add("a"), b = Add("b");
  Seen("w1"), Seen("w2"), Seen("w3");
  auto first = scheduler_.Assign("w1", now_), second = scheduler_.Assign("w2", now_);
  EXPECT_EQ(first->id, a);
  EXPECT_EQ(second->id, b);
  EXPECT_EQ(first->fence, 101);
  EXPECT_EQ(second->fence, 102);
  EXPECT_FALSE(scheduler_.Assign("w3", now_).has_value());
}

TEST_F(SchedulerTest, ABatchIsSpreadOverAllWorkersOneTaskEach) {
  for (const char* key : {"a", "b", "c", "d"}) Add(key);
  const std::vector<std::string> workers = {"w1", "w2", "w3"};
  std::map<std::string, TaskRow> held;
  for (const std::string& worker : workers) {
    Seen(worker);
    held[worker] = *scheduler_.Assign(worker, now_);
    EXPECT_EQ(scheduler_.Assign(worker, now_)->id, held[worker].id) << "a second task beside the first";
  }
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_), 3) << "busy ones count";
  std::set<std::string> ids;
  for (const auto& [worker, task] : held) ids.insert(task.id);
  EXPECT_EQ(ids.size(), 3);
  // The worker that finishes first gets the remaining task.
  EXPECT_TRUE(scheduler_.Complete(held["w2"].id, held["w2"].fence, "digest", now_));
  EXPECT_EQ(scheduler_.Assign("w2", now_)->key, "d");
  EXPECT_TRUE(scheduler_.Complete(held["w1"].id, held["w1"].fence, "digest", now_));
  EXPECT_FALSE(scheduler_.Assign("w1", now_).has_value());
}

TEST_F(SchedulerTest, OnlyWhoOffersAndIsNotDraining) {
  Add("a");
  scheduler_.Seen("builder", {"build:cpu"}, false, now_);
  EXPECT_FALSE(scheduler_.Assign("builder", now_).has_value());
  Seen("tired", true);
  EXPECT_FALSE(scheduler_.Assign("tired", now_).has_value());
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_), 0);
  Seen("fit");
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_), 1);
  EXPECT_TRUE(scheduler_.Assign("fit", now_).has_value());
}

TEST_F(SchedulerTest, EqualKeysAreOneTask) {
  const std::string a = Add("k");
  EXPECT_EQ(Add("k"), a);
  Seen("w");
  auto task = scheduler_.Assign("w", now_);
  EXPECT_TRUE(scheduler_.Complete(a, task->fence, "digest", now_));
  EXPECT_EQ(scheduler_.Find(a)->result_digest, "digest");
  scheduler_.Release(a, now_);
  EXPECT_NE(scheduler_.Find(a), nullptr) << "the second waiter still reads it";
  EXPECT_NE(Add("k"), a) << "a final task is not joined";
  scheduler_.Release(a, now_);
  EXPECT_EQ(scheduler_.Find(a), nullptr);
}

TEST_F(SchedulerTest, LostAnswerIsDeliveredAgainWithTheSameFence) {
  Add("a"), Add("b");
  Seen("w");
  auto first = scheduler_.Assign("w", now_), again = scheduler_.Assign("w", now_);
  EXPECT_EQ(again->id, first->id);
  EXPECT_EQ(again->fence, first->fence);
  EXPECT_EQ(again->attempts, 1);
}

TEST_F(SchedulerTest, HeartbeatsKeepTheLeaseAndSilenceLosesIt) {
  const std::string a = Add("a");
  Seen("w");
  auto task = scheduler_.Assign("w", now_);
  for (int i = 0; i < 5; ++i) {
    now_ += absl::Seconds(20);
    EXPECT_TRUE(scheduler_.Renew("w", a, task->fence, now_));
    scheduler_.Tick(now_);
  }
  EXPECT_EQ(State(a), TaskPhase::kLeased);
  now_ += absl::Seconds(31);
  scheduler_.Tick(now_);
  EXPECT_EQ(State(a), TaskPhase::kQueued);
  EXPECT_EQ(scheduler_.counts().lease_expiries, 1);
  EXPECT_FALSE(scheduler_.Renew("w", a, task->fence, now_));
}

TEST_F(SchedulerTest, OldFenceHasNoEffect) {
  const std::string a = Add("a");
  Seen("slow");
  auto old = scheduler_.Assign("slow", now_);
  now_ += absl::Seconds(31);
  scheduler_.Tick(now_);
  Seen("fresh");
  auto held = scheduler_.Assign("fresh", now_);
  ASSERT_TRUE(held.has_value());
  EXPECT_GT(held->fence, old->fence);
  EXPECT_FALSE(scheduler_.Complete(a, old->fence, "stale", now_));
  EXPECT_FALSE(scheduler_.Fail(a, old->fence, absl::InternalError("x"), now_));
  EXPECT_FALSE(scheduler_.Renew("fresh", a, old->fence, now_));
  EXPECT_FALSE(scheduler_.Renew("slow", a, held->fence, now_));
  EXPECT_TRUE(scheduler_.Complete(a, held->fence, "good", now_));
  EXPECT_EQ(scheduler_.Find(a)->result_digest, "good");
}

TEST_F(SchedulerTest, RetriesOnDistinctWorkersThenPoisonsWithEvidence) {
  const std::string a = Add("a");
  Seen("w1"), Seen("w2");
  auto task = scheduler_.Assign("w1", now_);
  EXPECT_TRUE(scheduler_.Fail(a, task->fence, absl::InternalError("signal 11"), now_));
  EXPECT_FALSE(scheduler_.Assign("w1", now_).has_value()) << "w2 has not tried it";
  task = scheduler_.Assign("w2", now_);
  ASSERT_TRUE(task.has_value());
  EXPECT_TRUE(scheduler_.Fail(a, task->fence, absl::DeadlineExceededError("hung"), now_));
  task = scheduler_.Assign("w1", now_);
  ASSERT_TRUE(task.has_value()) << "all have tried: anyone may again";
  EXPECT_TRUE(scheduler_.Fail(a, task->fence, absl::InternalError("signal 11"), now_));
  EXPECT_EQ(State(a), TaskPhase::kPoisoned);
  EXPECT_EQ(scheduler_.counts().poisoned, 1);
  EXPECT_THAT(scheduler_.Find(a)->evidence, HasSubstr("attempt 2 on worker w2: DEADLINE_EXCEEDED: hung"));
  EXPECT_FALSE(scheduler_.Assign("w2", now_).has_value());
}

TEST_F(SchedulerTest, ABuildThatFailsForItsTextIsNotTriedAgain) {
  const std::string a = Add("a", TaskType::kBuild);
  Seen("w");
  auto task = scheduler_.Assign("w", now_);
  scheduler_.Fail(a, task->fence, absl::InternalError("error: expected ';'"), now_);
  EXPECT_EQ(State(a), TaskPhase::kPoisoned);
}

TEST_F(SchedulerTest, LastWaiterCancelsAndTheChangeIsReported) {
  const std::string a = Add("a");
  Seen("w");
  auto task = scheduler_.Assign("w", now_);
  scheduler_.TakeChanged();
  scheduler_.Release(a, now_);
  auto changed = scheduler_.TakeChanged();
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].state, TaskPhase::kCancelled);
  EXPECT_FALSE(scheduler_.Renew("w", a, task->fence, now_)) << "the worker is told to stop";
  Add("b");
  EXPECT_EQ(scheduler_.Assign("w", now_)->key, "b") << "the worker is free";
}

TEST_F(SchedulerTest, RestoredLeaseAcceptsItsWorkerAfterRestart) {
  const std::string a = Add("a");
  Seen("w");
  scheduler_.Assign("w", now_);
  const TaskRow row = *scheduler_.Find(a);

  Scheduler restarted({}, row.fence);
  restarted.Restore(row, now_);
  EXPECT_EQ(restarted.Add(row, now_), a) << "the job asks again and joins";
  restarted.Seen("w", {"measure:cpu"}, false, now_);
  EXPECT_TRUE(restarted.Renew("w", a, row.fence, now_));
  EXPECT_TRUE(restarted.Complete(a, row.fence, "r", now_));
}

TEST_F(SchedulerTest, ATaskBelongsToTheJobThatAskedFirst) {
  TaskRow stored;
  stored.id = "t-a", stored.key = "a", stored.requirement = "measure:cpu";
  scheduler_.Restore(stored, now_);
  TaskRow row;
  row.key = "a", row.job = "j-1";
  EXPECT_EQ(scheduler_.Add(row, now_), "t-a");
  EXPECT_EQ(scheduler_.Find("t-a")->job, "j-1") << "a stored task has lost its job";
  row.job = "j-2";
  scheduler_.Add(row, now_);
  EXPECT_EQ(scheduler_.Find("t-a")->job, "j-1");
}

TEST_F(SchedulerTest, RestoredTaskWaitsUntilSomeoneAsks) {
  TaskRow row;
  row.id = "t-k", row.key = "k", row.requirement = "measure:cpu";
  scheduler_.Restore(row, now_);
  Seen("w");
  EXPECT_FALSE(scheduler_.Assign("w", now_).has_value());
  Add("k");
  EXPECT_TRUE(scheduler_.Assign("w", now_).has_value());
}

TEST_F(SchedulerTest, DisconnectedAndSilentWorkersDoNotCount) {
  Seen("w");
  scheduler_.Disconnected("w");
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_), 0);
  Seen("w");
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_), 1);
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_ + absl::Seconds(61)), 0);
  scheduler_.Tick(now_ + absl::Seconds(301));
  EXPECT_TRUE(scheduler_.Workers().empty());
}

}  // namespace
}  // namespace fusion
