#include "server/scheduler/scheduler.h"

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/worker_protocol.h"

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

TEST_F(SchedulerTest, TasksTakeTurnsByTheirJobsAlsoAfterARetry) {
  const auto add = [&](const std::string& key, const std::string& job) {
    TaskRow row;
    row.key = key, row.job = job, row.kind = TaskType::kMeasure, row.device_kind = "cpu",
    row.requirement = "measure:cpu";
    return scheduler_.Add(row, now_);
  };
  scheduler_.SetJob("slow", {"ann"}, 0), scheduler_.SetJob("fast", {"ann"}, 5), scheduler_.SetJob("other", {"bob"}, -5);
  add("s1", "slow"), add("s2", "slow"), add("f1", "fast"), add("o1", "other");
  const std::string shared = add("x", "slow");
  Seen("w"), Seen("v");
  const auto next = [&](const char* worker = "w") {
    const TaskRow task = *scheduler_.Assign(worker, now_);
    scheduler_.Complete(worker, task.id, task.fence, now_);
    scheduler_.TakeChanged();
    return task.key;
  };
  const TaskRow failing = *scheduler_.Assign("v", now_);
  EXPECT_EQ(failing.key, "f1");
  EXPECT_EQ(next(), "o1");
  scheduler_.Fail("v", failing.id, failing.fence, absl::UnavailableError("no driver"), now_);
  EXPECT_EQ(next(), "f1") << "its job's priority holds for another attempt";
  EXPECT_EQ(add("x", "fast"), shared);
  EXPECT_EQ(next(), "x") << "the job with priority waits for it, too";
  add("s2", "fast");
  scheduler_.Release(scheduler_.Find("t-s2") != nullptr ? "t-s2" : "", now_, "fast");
  EXPECT_EQ(next(), "s1") << "it does not any more";
  EXPECT_EQ(next(), "s2");
}

// A worker whose driver is broken fails each task that it gets, and another one does them.
TEST_F(SchedulerTest, AWorkerThatFailsWhatOthersDoIsSuspect) {
  Seen("broken"), Seen("well");
  const auto fail = [&](const std::string& key) {
    const std::string id = Add(key);
    const TaskRow task = *scheduler_.Assign("broken", now_);
    EXPECT_EQ(task.id, id);
    EXPECT_TRUE(scheduler_.Fail("broken", id, task.fence, absl::UnavailableError("no driver"), now_));
  };
  const auto pass = [&](const std::string& worker) {
    const TaskRow task = *scheduler_.Assign(worker, now_);
    EXPECT_TRUE(scheduler_.Complete(worker, task.id, task.fence, now_));
  };
  for (const char* key : {"a", "b"}) fail(key), pass("well");
  EXPECT_TRUE(scheduler_.TakeSuspects().empty()) << "two may be chance";
  Add("c"), pass("broken");
  for (const char* key : {"d", "e"}) fail(key), pass("well");
  EXPECT_TRUE(scheduler_.TakeSuspects().empty()) << "it has done one in between";
  fail("f"), pass("well");
  EXPECT_EQ(scheduler_.TakeSuspects(), std::vector<std::string>{"broken"});
  EXPECT_TRUE(scheduler_.TakeSuspects().empty()) << "once";
}

TEST_F(SchedulerTest, TasksThatFailOnEveryWorkerMakeNobodySuspect) {
  Seen("one"), Seen("two");
  for (int i = 0; i < 10; ++i) {
    const std::string id = Add(absl::StrCat("bad ", i));
    for (const char* worker : {"one", "two", "one"}) {
      const std::optional<TaskRow> task = scheduler_.Assign(worker, now_);
      if (task.has_value()) scheduler_.Fail(worker, id, task->fence, absl::UnavailableError("fails"), now_);
    }
    scheduler_.Release(id, now_);
  }
  EXPECT_TRUE(scheduler_.TakeSuspects().empty());
}

TEST_F(SchedulerTest, AWorkerThatIsKeptFromTasksEndsWhatItRuns) {
  const std::string a = Add("a");
  Add("b");
  Seen("w1");
  const TaskRow first = *scheduler_.Assign("w1", now_);
  scheduler_.KeepFromTasks("w1", true);
  scheduler_.KeepFromTasks("never seen", true);
  Seen("w1");
  EXPECT_EQ(scheduler_.Assign("w1", now_)->id, a) << "it goes on";
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_), 0);
  EXPECT_TRUE(scheduler_.Complete("w1", first.id, first.fence, now_));
  EXPECT_FALSE(scheduler_.Assign("w1", now_).has_value());
  scheduler_.KeepFromTasks("w1", false);
  EXPECT_EQ(scheduler_.Assign("w1", now_)->key, "b");

  Seen("w2", /*draining=*/true);
  scheduler_.KeepFromTasks("w2", true);
  scheduler_.KeepFromTasks("w2", false);
  Add("c");
  EXPECT_FALSE(scheduler_.Assign("w2", now_).has_value()) << "it says itself that it takes none";
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
  EXPECT_TRUE(scheduler_.Complete("w2", held["w2"].id, held["w2"].fence, now_));
  EXPECT_EQ(scheduler_.Assign("w2", now_)->key, "d");
  EXPECT_TRUE(scheduler_.Complete("w1", held["w1"].id, held["w1"].fence, now_));
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
  EXPECT_TRUE(scheduler_.Complete("w", a, task->fence, now_));
  EXPECT_EQ(State(a), TaskPhase::kDone);
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
    EXPECT_TRUE(scheduler_.Renew("w", a, task->fence, TaskStage::kUnknown, now_));
    scheduler_.Tick(now_);
  }
  EXPECT_EQ(State(a), TaskPhase::kLeased);
  now_ += absl::Seconds(31);
  scheduler_.Tick(now_);
  EXPECT_EQ(State(a), TaskPhase::kQueued);
  EXPECT_EQ(scheduler_.counts().lease_expiries, 1);
  EXPECT_FALSE(scheduler_.Renew("w", a, task->fence, TaskStage::kUnknown, now_));
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
  EXPECT_FALSE(scheduler_.Complete("slow", a, old->fence, now_));
  EXPECT_FALSE(scheduler_.Fail("slow", a, old->fence, absl::InternalError("x"), now_));
  EXPECT_FALSE(scheduler_.Renew("fresh", a, old->fence, TaskStage::kUnknown, now_));
  EXPECT_FALSE(scheduler_.Renew("slow", a, held->fence, TaskStage::kUnknown, now_));
  EXPECT_TRUE(scheduler_.Complete("fresh", a, held->fence, now_));
  EXPECT_EQ(State(a), TaskPhase::kDone);
}

TEST_F(SchedulerTest, RetriesOnDistinctWorkersThenPoisonsWithEvidence) {
  const std::string a = Add("a");
  Seen("w1"), Seen("w2");
  auto task = scheduler_.Assign("w1", now_);
  EXPECT_TRUE(scheduler_.Fail("w1", a, task->fence, absl::InternalError("signal 11"), now_));
  EXPECT_FALSE(scheduler_.Assign("w1", now_).has_value()) << "w2 has not tried it";
  task = scheduler_.Assign("w2", now_);
  ASSERT_TRUE(task.has_value());
  EXPECT_TRUE(scheduler_.Fail("w2", a, task->fence, absl::DeadlineExceededError("hung"), now_));
  task = scheduler_.Assign("w1", now_);
  ASSERT_TRUE(task.has_value()) << "all have tried: anyone may again";
  EXPECT_TRUE(scheduler_.Fail("w1", a, task->fence, absl::InternalError("signal 11"), now_));
  EXPECT_EQ(State(a), TaskPhase::kPoisoned);
  EXPECT_EQ(scheduler_.counts().poisoned, 1);
  EXPECT_THAT(scheduler_.Find(a)->evidence, HasSubstr("attempt 2 on worker w2: DEADLINE_EXCEEDED: hung"));
  EXPECT_FALSE(scheduler_.Assign("w2", now_).has_value());
}

TEST_F(SchedulerTest, ABuildThatFailsForItsTextIsNotTriedAgain) {
  const std::string a = Add("a", TaskType::kBuild);
  Seen("w");
  auto task = scheduler_.Assign("w", now_);
  scheduler_.Fail("w", a, task->fence, absl::InternalError("error: expected ';'"), now_);
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
  EXPECT_FALSE(scheduler_.Renew("w", a, task->fence, TaskStage::kUnknown, now_)) << "the worker is told to stop";
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
  EXPECT_TRUE(restarted.Renew("w", a, row.fence, TaskStage::kUnknown, now_));
  EXPECT_TRUE(restarted.Complete("w", a, row.fence, now_));
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

TEST_F(SchedulerTest, ARestoredTaskThatIsDoneBeforeSomeoneAsksIsThatOnes) {
  TaskRow row;
  row.id = "t-1", row.key = "a", row.state = TaskPhase::kLeased, row.worker = "w", row.fence = 7, row.attempts = 1;
  row.requirement = "measure:cpu";
  scheduler_.Restore(row, now_);
  Seen("w");
  EXPECT_TRUE(scheduler_.Complete("w", "t-1", 7, now_));
  EXPECT_EQ(scheduler_.TakeChanged().size(), 1u);
  scheduler_.Tick(now_);
  EXPECT_EQ(Add("a"), "t-1") << "whoever looked for its result just before it was stored";
  EXPECT_EQ(State("t-1"), TaskPhase::kDone);
  const std::string again = Add("a");
  EXPECT_NE(again, "t-1") << "later ones find it stored, or want another attempt";
  scheduler_.Release("t-1", now_);
  EXPECT_EQ(scheduler_.Find("t-1"), nullptr);

  row.id = "t-2", row.key = "b", row.fence = 8;
  scheduler_.Restore(row, now_);
  EXPECT_TRUE(scheduler_.Complete("w", "t-2", 8, now_));
  scheduler_.TakeChanged();
  scheduler_.Tick(now_ + absl::Hours(1));
  EXPECT_EQ(scheduler_.Find("t-2"), nullptr) << "nobody asked";
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

TEST_F(SchedulerTest, OnlyTheWorkerThatHoldsTheLeaseEndsIt) {
  const std::string a = Add("a");
  Seen("w"), Seen("other");
  const auto task = scheduler_.Assign("w", now_);
  EXPECT_FALSE(scheduler_.Holds("other", a, task->fence));
  EXPECT_FALSE(scheduler_.Complete("other", a, task->fence, now_));
  EXPECT_FALSE(scheduler_.Fail("other", a, task->fence, absl::InternalError("forged"), now_));
  EXPECT_EQ(State(a), TaskPhase::kLeased);
  EXPECT_TRUE(scheduler_.Complete("w", a, task->fence, now_));
  EXPECT_EQ(State(a), TaskPhase::kDone);
}

TEST_F(SchedulerTest, ALostPayloadBlamesNobodyAndIsAskedForAgain) {
  const std::string a = Add("a");
  Seen("w");
  std::optional<TaskRow> task = scheduler_.Assign("w", now_);
  EXPECT_FALSE(scheduler_.TakesPayload(a)) << "its worker has read it";
  EXPECT_FALSE(scheduler_.LosePayload("w", a, task->fence + 1, now_));
  for (int times = 0; times < 3; ++times) {
    ASSERT_TRUE(scheduler_.LosePayload("w", a, task->fence, now_));
    EXPECT_TRUE(scheduler_.LacksPayload(a));
    EXPECT_FALSE(scheduler_.Assign("w", now_).has_value());
    scheduler_.GivePayload(a, absl::StrCat("digest ", times), 7);
    task = scheduler_.Assign("w", now_);
    ASSERT_TRUE(task.has_value()) << "w has not tried it";
    EXPECT_EQ(task->payload_digest, absl::StrCat("digest ", times));
    EXPECT_EQ(task->attempts, 1);
    EXPECT_EQ(task->evidence, "");
  }
  ASSERT_TRUE(scheduler_.LosePayload("w", a, task->fence, now_));
  EXPECT_EQ(State(a), TaskPhase::kPoisoned) << "nothing is tried for ever";
  EXPECT_NE(scheduler_.Find(a)->evidence.find("check its disk"), std::string::npos);
  EXPECT_EQ(scheduler_.Workers()[0]->tasks_failed, 0);
}

TEST_F(SchedulerTest, AWorkerThatHangsButBeatsLosesTheTask) {
  TaskRow row;
  row.key = "k", row.requirement = "measure:cpu", row.timeout_ms = 60000;
  for (const TaskStage stage : {TaskStage::kUnknown, TaskStage::kRunning, TaskStage::kWaiting}) {
    Scheduler scheduler({}, 100);
    const std::string id = scheduler.Add(row, now_);
    scheduler.Seen("w", {"measure:cpu"}, false, now_);
    const auto task = scheduler.Assign("w", now_);
    const absl::Time start = now_;
    absl::Time now = start;
    while (scheduler.Find(id)->state == TaskPhase::kLeased && now - start < absl::Hours(10)) {
      now += absl::Seconds(10);
      EXPECT_TRUE(scheduler.Renew("w", id, task->fence, stage, now));
      scheduler.Tick(now);
    }
    const absl::Duration limit =
        absl::Minutes(1) + scheduler.config().close_slack +
        (stage == TaskStage::kRunning ? absl::ZeroDuration() : scheduler.config().longest_turn);
    EXPECT_GT(now - start, limit);
    EXPECT_LE(now - start, limit + absl::Seconds(10));
    EXPECT_FALSE(scheduler.Renew("w", id, task->fence, stage, now)) << "the worker is told to stop";
    EXPECT_THAT(scheduler.Find(id)->evidence, HasSubstr("not finished within its 1m"));
  }
}

TEST_F(SchedulerTest, WaitingForTheTurnDoesNotCountAgainstTheTimeout) {
  TaskRow row;
  row.key = "k", row.requirement = "measure:cpu", row.timeout_ms = 60000;
  const std::string id = scheduler_.Add(row, now_);
  Seen("w");
  const auto task = scheduler_.Assign("w", now_);
  const auto beat = [&](TaskStage stage, absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ += absl::Seconds(10);
      scheduler_.Renew("w", id, task->fence, stage, now_);
      scheduler_.Tick(now_);
    }
  };
  beat(TaskStage::kWaiting, absl::Minutes(20));
  beat(TaskStage::kRunning, absl::Minutes(2));
  EXPECT_EQ(State(id), TaskPhase::kLeased);
  beat(TaskStage::kRunning, absl::Minutes(2));
  EXPECT_EQ(State(id), TaskPhase::kQueued);
}

TEST_F(SchedulerTest, ATaskThatNobodyTakesOrThatNeverEndsIsPoisonedWithTheReason) {
  SchedulerConfig config;
  config.schedule_to_start = absl::Hours(1), config.schedule_to_close = absl::Hours(2), config.max_attempts = 100000;
  Scheduler scheduler(config, 0);
  TaskRow row;
  row.key = "not taken", row.requirement = "build:tpu";
  const std::string not_taken = scheduler.Add(row, now_);
  row.key = "fails", row.requirement = "measure:cpu";
  const std::string fails = scheduler.Add(row, now_);
  for (const absl::Time end = now_ + absl::Hours(3); now_ < end; now_ += absl::Seconds(60)) {
    scheduler.Seen("w", {"measure:cpu"}, false, now_);
    if (const auto task = scheduler.Assign("w", now_); task.has_value()) {
      scheduler.Fail("w", fails, task->fence, absl::UnavailableError("again"), now_);
    }
    scheduler.Tick(now_);
  }
  EXPECT_EQ(scheduler.Find(not_taken)->state, TaskPhase::kPoisoned);
  EXPECT_THAT(scheduler.Find(not_taken)->evidence, HasSubstr("no worker took it within 1h"));
  EXPECT_EQ(scheduler.Find(fails)->state, TaskPhase::kPoisoned);
  EXPECT_THAT(scheduler.Find(fails)->evidence, HasSubstr("not done within 2h"));
}

TEST_F(SchedulerTest, ARestoredLeaseOutlastsTheLongestPauseOfItsWorker) {
  const std::string a = Add("a");
  Seen("w");
  scheduler_.Assign("w", now_);
  const TaskRow row = *scheduler_.Find(a);
  // Workers of 0.1.0 call again after up to 22.5 s.
  static_assert(kLongestReconnectPauseMs <= 22500);
  // An idle worker has time to call again before it counts as lost.
  EXPECT_LE(absl::Milliseconds(kIdlePollMs) + absl::Seconds(15), 2 * SchedulerConfig().lease);
  Scheduler restarted({}, row.fence);
  restarted.Restore(row, now_);
  restarted.Add(row, now_);
  for (int second = 0; second < 25; ++second) restarted.Tick(now_ += absl::Seconds(1));
  restarted.Seen("w", {"measure:cpu"}, false, now_);
  EXPECT_TRUE(restarted.Renew("w", a, row.fence, TaskStage::kUnknown, now_));
}

TEST_F(SchedulerTest, TasksFromBeforeARestartThatNobodyWantsLeaveAndAreNotCounted) {
  TaskRow wanted, queued, leased;
  wanted.id = "t-wanted", wanted.key = "wanted", queued.id = "t-queued", queued.key = "queued";
  leased.id = "t-leased", leased.key = "leased", leased.state = TaskPhase::kLeased, leased.worker = "gone";
  for (TaskRow* row : {&wanted, &queued, &leased}) {
    row->requirement = "measure:cpu", row->device_kind = "cpu";
    scheduler_.Restore(*row, now_);
  }
  EXPECT_TRUE(scheduler_.QueuedTasks().empty());
  now_ += absl::Minutes(1);
  EXPECT_EQ(scheduler_.OldestQueuedAge(now_), absl::ZeroDuration());
  Add("wanted");
  EXPECT_THAT(scheduler_.QueuedTasks(), testing::ElementsAre(testing::Pair("cpu", 1)));
  scheduler_.TakeChanged();
  std::set<std::string> left;
  for (int minute = 0; minute < 15; ++minute) {
    scheduler_.Tick(now_ += absl::Minutes(1));
    for (const TaskRow& row : scheduler_.TakeChanged()) {
      if (row.state == TaskPhase::kCancelled) left.insert(row.id);
    }
  }
  EXPECT_THAT(left, testing::ElementsAre("t-leased", "t-queued"));
  EXPECT_EQ(State("t-wanted"), TaskPhase::kQueued);
}

TEST_F(SchedulerTest, ArrivalsAreCountedAndCallsOfWorkersThatAreThereAreNone) {
  const auto arrives = [&](const std::function<void()>& happens) {
    const int64_t before = scheduler_.arrivals();
    happens();
    return scheduler_.arrivals() > before;
  };
  EXPECT_TRUE(arrives([&] { Seen("w"); }));
  now_ += absl::Seconds(20);
  EXPECT_FALSE(arrives([&] { Seen("w"); })) << "it calls again";
  EXPECT_FALSE(arrives([&] { Seen("w", /*draining=*/true); }));
  EXPECT_TRUE(arrives([&] { Seen("w"); })) << "it drains no longer";
  scheduler_.Disconnected("w", now_);
  EXPECT_TRUE(arrives([&] { Seen("w"); })) << "it is back";
  now_ += absl::Seconds(61);
  EXPECT_TRUE(arrives([&] { Seen("w"); })) << "it was lost";
  scheduler_.KeepFromTasks("w", true);
  EXPECT_TRUE(arrives([&] { scheduler_.KeepFromTasks("w", false); }));
  EXPECT_TRUE(arrives([&] { scheduler_.Seen("w", {"measure:cpu", "build:cpu"}, false, now_); })) << "it offers more";
}

// Farm asks the workers that wait only when there is a chance.
TEST_F(SchedulerTest, WhoGetsNothingGetsNothingUntilThereIsAChance) {
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto any_worker = [&] { return absl::StrCat("w", below(5)); };
  std::vector<std::string> tasks;
  std::map<std::string, TaskRow> held;  // by worker
  std::set<std::string> waiting;        // workers that got nothing
  int without_a_chance = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::string worker = any_worker();
    const auto lease = held.find(worker);
    switch (below(9)) {
      case 0:
        tasks.push_back(Add(absl::StrCat("task ", step)));
        break;
      case 1:
        Seen(worker, below(4) == 0);
        scheduler_.SetSource(worker, absl::StrCat("source ", (worker[1] - '0') % 2));
        waiting.erase(worker);  // its poll is a new one
        break;
      case 2:
        scheduler_.Disconnected(worker, now_);
        waiting.erase(worker);
        break;
      case 3:
        scheduler_.KeepFromTasks(worker, below(2) == 0);
        break;
      case 4:
        if (!tasks.empty()) {
          const std::string& task = tasks[random() % tasks.size()];
          if (below(2) == 0) {
            scheduler_.Release(task, now_);
          } else if (scheduler_.TakesPayload(task)) {
            scheduler_.GivePayload(task, absl::StrCat("payload ", step), 1);
          }
        }
        break;
      default: {
        if (lease == held.end()) break;
        const TaskRow task = lease->second;
        held.erase(lease);
        const int how = below(4);
        if (how == 0) (void)scheduler_.Complete(worker, task.id, task.fence, now_);
        if (how == 1) (void)scheduler_.Fail(worker, task.id, task.fence, absl::UnavailableError("no"), now_);
        if (how == 2) (void)scheduler_.Again(worker, task.id, task.fence, "alone", false, now_);
        if (how == 3) (void)scheduler_.LosePayload(worker, task.id, task.fence, now_);
        waiting.erase(worker);
      }
    }
    const bool chance = scheduler_.TakeChance();
    for (int w = 0; w < 5; ++w) {
      const std::string id = absl::StrCat("w", w);
      if (held.count(id) > 0) continue;
      const bool waited = waiting.count(id) > 0;
      const std::optional<TaskRow> task = scheduler_.Assign(id, now_);
      if (task.has_value()) {
        ASSERT_TRUE(chance || !waited) << "step " << step;
        held[id] = *task;
        waiting.erase(id);
      } else {
        waiting.insert(id);
        without_a_chance += !chance && waited;
      }
    }
    (void)scheduler_.TakeChanged();
  }
  EXPECT_GT(without_a_chance, 1000);
}

TEST_F(SchedulerTest, DisconnectedAndSilentWorkersDoNotCount) {
  Seen("w");
  scheduler_.Disconnected("w", now_);
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_), 0);
  Seen("w");
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_), 1);
  EXPECT_EQ(scheduler_.WorkersThatOffer("measure:cpu", now_ + absl::Seconds(61)), 0);
  scheduler_.Tick(now_ + absl::Seconds(301));
  EXPECT_TRUE(scheduler_.Workers().empty());
}

TEST_F(SchedulerTest, AResultThatNeedsASecondOpinionGoesToAnotherSourceAndDoesNotCount) {
  for (const char* worker : {"a", "a2", "b"}) Seen(worker);
  scheduler_.SetSource("a", "token a");
  scheduler_.SetSource("a2", "token a");
  scheduler_.SetSource("b", "token b");
  const std::string id = Add("k");
  const TaskRow first = *scheduler_.Assign("a", now_);
  EXPECT_TRUE(scheduler_.AnotherMay(id, now_));
  EXPECT_FALSE(scheduler_.Again("b", id, first.fence, "", false, now_)) << "it does not hold the lease";
  ASSERT_TRUE(scheduler_.Again("a", id, first.fence, "", false, now_));
  EXPECT_EQ(scheduler_.Find(id)->attempts, 0);
  for (const char* worker : {"a", "a2"}) EXPECT_FALSE(scheduler_.Assign(worker, now_).has_value()) << worker;
  EXPECT_FALSE(scheduler_.IsStranded(id, now_));
  const TaskRow second = *scheduler_.Assign("b", now_);
  EXPECT_GT(second.fence, first.fence);
  EXPECT_FALSE(scheduler_.AnotherMay(id, now_));
  ASSERT_TRUE(scheduler_.Again("b", id, second.fence, "half as long", true, now_));
  EXPECT_TRUE(scheduler_.IsStranded(id, now_));
  Seen("believed");
  EXPECT_FALSE(scheduler_.IsStranded(id, now_));
  scheduler_.Disconnected("believed", now_);
  EXPECT_FALSE(scheduler_.IsStranded(id, now_ + absl::Seconds(19))) << "it may come back";
  EXPECT_TRUE(scheduler_.IsStranded(id, now_ + absl::Seconds(21)));
  scheduler_.CompleteQueued(id, "a", now_);
  EXPECT_EQ(scheduler_.Find(id)->state, TaskPhase::kDone);
  EXPECT_EQ(scheduler_.Find(id)->worker, "a");
  EXPECT_FALSE(scheduler_.Assign("a2", now_).has_value());
}

}  // namespace
}  // namespace fusion
