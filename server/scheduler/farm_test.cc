#include "server/scheduler/farm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "db/stores/testing/add_rows.h"
#include "runtime/base/sha256.h"
#include "server/testing/forwarding_store.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A store whose calls stand still or fail as a test wants.
class BadStore : public testing::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  absl::StatusOr<std::vector<TaskAnswer>> CallTasks(absl::Span<const TaskCall> calls, int64_t now_ms) override {
    absl::MutexLock lock(&mutex_);
    ++puts_;
    mutex_.Await(absl::Condition(&goes_on_));
    return ForwardingStore::CallTasks(calls, now_ms);
  }
  absl::StatusOr<int64_t> LastFence() override {
    if (unreadable) return absl::UnavailableError("cannot read");
    return ForwardingStore::LastFence();
  }
  // From its next call on, CallTasks waits until GoOn.
  void StandStill() {
    absl::MutexLock lock(&mutex_);
    goes_on_ = false;
    puts_ = 0;
  }
  void AwaitStandstill() {
    absl::MutexLock lock(&mutex_);
    const auto stands = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return puts_ > 0; };
    mutex_.Await(absl::Condition(&stands));
  }
  void GoOn() {
    absl::MutexLock lock(&mutex_);
    goes_on_ = true;
  }
  bool unreadable = false;

 private:
  absl::Mutex mutex_;
  bool goes_on_ ABSL_GUARDED_BY(mutex_) = true;
  int puts_ ABSL_GUARDED_BY(mutex_) = 0;
};

class FarmTest : public ::testing::Test {
 protected:
  void TearDown() override { farm_.Stop(); }

  static FarmTask Task(const std::string& name) {
    FarmTask task;
    task.key = absl::StrCat("key of ", name), task.description = name, task.payload = absl::StrCat("payload of ", name);
    task.device_kind = "cpu", task.requirement = BuildRequirement("cpu");
    return task;
  }

  // Attaches a worker that builds for the CPU.
  void Attach(const std::string& id = "w1") {
    AttachedWorker worker;
    worker.id = id, worker.name = "worker", worker.toolchain_kinds = {"cpu"};
    ASSERT_TRUE(farm_.Register(worker).ok());
  }
  // Attaches a worker that measures on a device with that name.
  void AttachDevice(const std::string& id, const std::string& device) {
    AttachedWorker worker;
    worker.id = id, worker.name = "worker", worker.measure_kinds = {"cpu"};
    worker.device.name = device;
    worker.fingerprint = worker.device.Fingerprint();
    ASSERT_TRUE(farm_.Register(worker).ok());
  }
  int PayloadFilesThere() const {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator(state_.folder() + "/blobs/payloads"), {}));
  }
  void Advance(absl::Duration time) {
    absl::MutexLock lock(&clock_mutex_);
    now_ += time;
  }

  FarmAnswer Poll(const FarmPoll& given, const std::string& worker = "w1") { return PollOf(farm_, given, worker); }
  static FarmAnswer PollOf(Farm& farm, const FarmPoll& given, const std::string& worker) {
    FarmPoll poll = given;
    FarmAnswer answer;
    absl::Notification replied;
    poll.worker_id = worker;
    poll.gone = std::make_shared<std::atomic<bool>>(false);
    poll.reply = [&](const FarmAnswer& got) {
      answer = got;
      replied.Notify();
    };
    farm.Poll(std::move(poll));
    replied.WaitForNotification();
    return answer;
  }

  // Does tasks as a worker would, until it has finished `count`; `result` gives a task's result.
  void Work(int count, const std::function<absl::StatusOr<std::string>(const TaskRow&)>& result) {
    FarmPoll ask;
    ask.max_wait = absl::Seconds(30);
    std::optional<TaskRow> task = Poll(ask).task;
    for (int done = 0; done < count; ++done) {
      while (!task.has_value()) task = Poll(ask).task;
      FarmPoll answer = ask;
      if (done + 1 == count) answer.max_wait = absl::ZeroDuration();
      answer.task_id = task->id, answer.fence = task->fence, answer.finished = true;
      answer.result = result(*task);
      task = Poll(answer).task;
    }
  }

  absl::Mutex clock_mutex_;
  absl::Time now_ ABSL_GUARDED_BY(clock_mutex_) = absl::FromUnixSeconds(1000);
  testing::TemporaryState state_;
  BadStore store_{&state_.store()};
  Metrics metrics_;
  Farm farm_{&store_,
             &state_.artifacts(),
             &metrics_,
             [](const TaskRow& task, const std::string& payload, const std::string& result,
                const AttachedWorker&) -> absl::StatusOr<AcceptedRows> {
               if (result == "bad") return absl::UnavailableError("a bad result");
               EXPECT_EQ(payload, absl::StrCat("payload of ", task.description));
               return AcceptedRows{.builds = {{std::string(64, task.description[0]), result, 1}}};
             },
             {},
             NoLog(),
             [this] {
               absl::MutexLock lock(&clock_mutex_);
               return now_;
             }};
};

TEST_F(FarmTest, ADrainedWorkerIsNamedAndGetsNoTaskAlsoUnderANewIdAndAfterARestart) {
  ASSERT_TRUE(farm_.Restore().ok());
  farm_.Start();
  EXPECT_THAT(farm_.Drain({"worker", "", "me", 5}).message(),
              HasSubstr("no worker 'worker' is attached; attached: none"));
  AttachDevice("w1", "a device");
  ASSERT_TRUE(farm_.Drain({"worker", "new fans", "me", 5}).ok());
  EXPECT_FALSE(farm_.FindDevice("cpu").has_value());
  EXPECT_EQ(farm_.AttachedKinds(), "none (drained: worker)");
  AttachDevice("w2", "a device");
  EXPECT_FALSE(farm_.FindDevice("cpu").has_value());

  Farm again(
      &store_, &state_.artifacts(), &metrics_,
      [](const TaskRow&, const std::string&, const std::string&, const AttachedWorker&) { return AcceptedRows(); });
  ASSERT_TRUE(again.Restore().ok());
  ASSERT_EQ(again.Drained().size(), 1u);
  EXPECT_EQ(again.Drained()[0].reason, "new fans");

  EXPECT_EQ(farm_.Release("worker")->by, "me");
  EXPECT_TRUE(farm_.FindDevice("cpu").has_value());
  EXPECT_TRUE(absl::IsNotFound(farm_.Release("worker").status()));
  EXPECT_TRUE(store_.DrainedWorkers()->empty());
}

TEST_F(FarmTest, AWorkerThatFailsWhatAnotherOneDoesIsDrainedWithTheReason) {
  ASSERT_TRUE(farm_.Restore().ok());
  farm_.Start();
  for (const char* name : {"broken", "well"}) {
    AttachedWorker worker;
    worker.id = name, worker.name = name, worker.toolchain_kinds = {"cpu"};
    ASSERT_TRUE(farm_.Register(worker).ok());
    Poll({}, name);
  }
  const auto deliver = [&](const std::string& worker, const absl::StatusOr<std::string>& result) {
    FarmPoll ask;
    ask.max_wait = absl::Seconds(30);
    std::optional<TaskRow> task;
    while (!task.has_value()) task = Poll(ask, worker).task;
    FarmPoll answer;
    answer.task_id = task->id, answer.fence = task->fence, answer.finished = true;
    answer.result = result;
    Poll(answer, worker);
  };
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_TRUE(farm_.Drained().empty());
    std::thread job([&] { EXPECT_TRUE(farm_.RunAll({Task(name)}, {})->front().status.ok()); });
    deliver("broken", absl::UnavailableError("no driver"));
    deliver("well", std::string(64, 'b'));
    job.join();
  }
  while (farm_.Drained().empty()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(farm_.Drained().front().name, "broken");
  EXPECT_THAT(farm_.Drained().front().reason, HasSubstr("it failed 3 tasks in a row that other workers then did"));
  EXPECT_EQ(store_.DrainedWorkers()->front().name, "broken") << "also after a restart";
}

TEST_F(FarmTest, AWindowBeginsAndEndsByItself) {
  std::atomic<int64_t> wall_s{1000};
  farm_.SetWallClock([&] { return absl::FromUnixSeconds(wall_s); });
  ASSERT_TRUE(farm_.Restore().ok());
  farm_.Start();
  AttachDevice("w1", "a device");
  const auto drain = [&](int64_t from_s, int64_t until_s) {
    return farm_.Drain({"worker", "new fans", "me", 5, from_s * 1000, until_s * 1000});
  };
  EXPECT_TRUE(absl::IsInvalidArgument(drain(0, 999)));
  EXPECT_TRUE(absl::IsInvalidArgument(drain(3000, 2000)));
  ASSERT_TRUE(drain(2000, 3000).ok());
  EXPECT_TRUE(farm_.FindDevice("cpu").has_value()) << "it has not begun";
  wall_s = 2000;
  while (farm_.FindDevice("cpu").has_value()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(farm_.AttachedKinds(), "none (drained: worker)");
  wall_s = 3000;
  while (!farm_.FindDevice("cpu").has_value()) absl::SleepFor(absl::Milliseconds(5));
  while (!store_.DrainedWorkers()->empty()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(absl::IsNotFound(farm_.Release("worker").status()));
}

TEST_F(FarmTest, ChecksAreAskedForWhereAWorkerWithASourceCouldMeasure) {
  AttachedWorker worker;
  worker.id = "w1", worker.name = "rack7", worker.measure_kinds = {"cpu"}, worker.fingerprint = "f";
  ASSERT_TRUE(farm_.Register(worker).ok());
  EXPECT_FALSE(farm_.ChecksFor(MeasureRequirement("cpu", "f"), 1).canaries);
  worker.id = "w2", worker.source = "token rack7";
  ASSERT_TRUE(farm_.Register(worker).ok());
  EXPECT_TRUE(farm_.ChecksFor(MeasureRequirement("cpu", "f"), 1).canaries);
  EXPECT_FALSE(farm_.ChecksFor(MeasureRequirement("cpu", "another"), 1).canaries);
}

TEST_F(FarmTest, OutcomesAreParallelToTheTasks) {
  farm_.Start();
  Attach();
  std::thread worker(
      [&] { Work(3, [](const TaskRow& task) { return absl::StrCat("result of ", task.description); }); });
  std::vector<int64_t> done;
  FarmWait wait;
  wait.progress = [&](int64_t now, int64_t total, const std::string& message) {
    EXPECT_EQ(total, 3);
    EXPECT_EQ(message, "");
    done.push_back(now);
  };
  const auto outcomes = farm_.RunAll({Task("a"), Task("b"), Task("c")}, wait);
  worker.join();
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  ASSERT_EQ(outcomes->size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(outcomes->at(i).status.ok()) << outcomes->at(i).status;
    EXPECT_EQ(outcomes->at(i).result, absl::StrCat("result of ", std::string(1, static_cast<char>('a' + i))));
    EXPECT_EQ(outcomes->at(i).worker, "w1");
  }
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.back(), 3);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST_F(FarmTest, ATaskThatFailsHasItsEvidenceAndOthersTheirResults) {
  farm_.Start();
  Attach();
  // One bad result exhausts the attempts of a single worker; the good task needs one.
  std::thread worker([&] {
    Work(2, [](const TaskRow& task) -> absl::StatusOr<std::string> {
      if (task.description == "crashes") return absl::InvalidArgumentError("the text has an error");
      return "fine";
    });
  });
  const auto outcomes = farm_.RunAll({Task("crashes"), Task("works")}, {});
  worker.join();
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  EXPECT_EQ(outcomes->at(0).status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(outcomes->at(0).status.message()),
              AllOf(HasSubstr("crashes: given up after 1 attempts"), HasSubstr("the text has an error")));
  EXPECT_EQ(outcomes->at(1).result, "fine");
}

TEST_F(FarmTest, WithoutAWorkerItSaysSoAndGivesUp) {
  farm_.Start();
  FarmWait wait;
  wait.queue_timeout = absl::ZeroDuration();
  const auto outcomes = farm_.RunAll({Task("a"), Task("b")}, wait);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  for (const FarmOutcome& outcome : *outcomes) {
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(outcome.status.message()),
                AllOf(HasSubstr("no worker for cpu; kinds attached: none"), HasSubstr("gave up after 0")));
  }
}

TEST_F(FarmTest, WhatAJobHasWaitedBeforeIsAPartOfItsWait) {
  farm_.Start();
  FarmWait wait;
  wait.queue_timeout = absl::Minutes(1);
  wait.waited[Task("a").requirement] = absl::Minutes(1);
  const auto outcomes = farm_.RunAll({Task("a")}, wait);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  EXPECT_THAT(std::string(outcomes->front().status.message()), HasSubstr("gave up after 1m"));
}

TEST_F(FarmTest, AWaitThatIsGivenUpSaysWhatItLacks) {
  farm_.Start();
  FarmWait wait;
  std::vector<std::string> told;
  FarmLack lack;
  wait.away = [&](bool away) { told.push_back(away ? "away" : "back"); };
  wait.gives_up = [&](const FarmLack& lacks) {
    told.push_back("asked");
    lack = lacks;
    return true;
  };
  wait.needs = true;
  EXPECT_EQ(farm_.RunAll({Task("a")}, wait).status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(told, ::testing::ElementsAre("away", "asked", "back"));
  EXPECT_EQ(lack.requirement, BuildRequirement("cpu"));
  EXPECT_THAT(lack.failure, HasSubstr("no worker for cpu; kinds attached: none; gave up after 10m"));
  EXPECT_FALSE(farm_.Has(lack));
  Attach();
  EXPECT_TRUE(farm_.Has(lack));
}

TEST_F(FarmTest, WhoCancelsGetsNoOutcomeAndReleasesTheTasks) {
  farm_.Start();
  FarmWait wait;
  bool cancel = false;
  std::string message;
  wait.progress = [&](int64_t, int64_t, const std::string& text) {
    message = text;
    cancel = true;
  };
  wait.cancelled = [&] { return cancel; };
  EXPECT_EQ(farm_.RunAll({Task("a")}, wait).status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(message, HasSubstr("no worker for cpu"));
  // Nobody waits for it any more, so the next worker gets nothing.
  Attach();
  FarmPoll ask;
  ask.max_wait = absl::ZeroDuration();
  EXPECT_FALSE(Poll(ask).task.has_value());
}

TEST_F(FarmTest, AShutdownEndsEveryWait) {
  farm_.Start();
  farm_.Stop();
  EXPECT_EQ(farm_.RunAll({Task("a")}, {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(FarmTest, NoTasksAreDoneAtOnce) {
  const auto outcomes = farm_.RunAll({}, {});
  ASSERT_TRUE(outcomes.ok());
  EXPECT_TRUE(outcomes->empty());
}

TEST_F(FarmTest, EqualTasksOfTwoCallersAreDoneOnce) {
  farm_.Start();
  Attach();
  const auto run = [&] { return farm_.RunAll({Task("same"), Task("same")}, {}); };
  int times = 0;
  std::thread worker([&] {
    Work(1, [&](const TaskRow&) {
      ++times;
      return std::string("once");
    });
  });
  const auto outcomes = run();
  worker.join();
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  EXPECT_EQ(outcomes->at(0).result, "once");
  EXPECT_EQ(outcomes->at(1).result, "once");
  EXPECT_EQ(times, 1);
}

TEST_F(FarmTest, AStoreThatStandsStillLongerThanALeaseCostsNobodyTheirTask) {
  farm_.Start();
  Attach();
  std::thread compilation([&] { EXPECT_TRUE(farm_.RunAll({Task("long")}, {}).ok()); });
  FarmPoll ask;
  ask.max_wait = absl::Seconds(30);
  const std::optional<TaskRow> task = Poll(ask).task;
  ASSERT_TRUE(task.has_value());

  store_.StandStill();
  std::thread other([&] { EXPECT_TRUE(farm_.RunAll({Task("other")}, {}).ok()); });  // something to store
  store_.AwaitStandstill();
  FarmPoll beat;
  beat.task_id = task->id, beat.fence = task->fence;
  FarmAnswer answer;
  std::thread worker([&] { answer = Poll(beat); });
  Advance(absl::Seconds(40));
  store_.GoOn();
  worker.join();
  ASSERT_TRUE(answer.task.has_value()) << "the heartbeat came in time, the server did not look at it";
  EXPECT_EQ(answer.task->fence, task->fence);
  EXPECT_EQ(metrics_.Value(Metric::kLeaseExpiries), 0);
  beat.finished = true, beat.result = "done", beat.max_wait = absl::Seconds(30);
  const std::optional<TaskRow> next = Poll(beat).task;
  ASSERT_TRUE(next.has_value());
  beat.task_id = next->id, beat.fence = next->fence, beat.max_wait = absl::ZeroDuration();
  Poll(beat);
  compilation.join();
  other.join();
}

TEST_F(FarmTest, WorkersThatCouldNotBeHeardWhileTheMachineStoodStillKeepTheirTasks) {
  farm_.Start();
  Attach();
  std::thread compilation([&] { EXPECT_EQ(farm_.RunAll({Task("long")}, {})->at(0).result, "done"); });
  FarmPoll ask;
  ask.max_wait = absl::Seconds(30);
  const std::optional<TaskRow> task = Poll(ask).task;
  ASSERT_TRUE(task.has_value());
  Advance(absl::Hours(1));  // in one step, as after SIGSTOP: no round of the farm between
  FarmPoll idle;
  Attach("w2");
  EXPECT_FALSE(Poll(idle, "w2").task.has_value()) << "the task of w1 was given away";
  FarmPoll beat;
  beat.task_id = task->id, beat.fence = task->fence, beat.finished = true, beat.result = "done";
  Poll(beat);
  compilation.join();
  EXPECT_EQ(metrics_.Value(Metric::kTasks, {{"kind", "build"}, {"outcome", "succeeded"}}), 1);
}

TEST_F(FarmTest, FencesRiseOverRestartsWhateverBecameOfTheRows) {
  TaskRow row;
  row.id = "t-a", row.key = "key", row.state = TaskPhase::kDone;
  ASSERT_TRUE(testing::Add(state_.store(), {row}).ok());
  row.id = "t-a+", row.state = TaskPhase::kQueued;  // the key is asked for again
  ASSERT_TRUE(testing::Add(state_.store(), {row}).ok());
  ASSERT_TRUE(farm_.Restore().ok());
  farm_.Start();
  Attach();
  std::thread compilation([&] { EXPECT_TRUE(farm_.RunAll({Task("a")}, {}).ok()); });
  FarmPoll ask;
  ask.max_wait = absl::Seconds(30);
  const std::optional<TaskRow> task = Poll(ask).task;
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->fence, 2);
  FarmPoll done;
  done.task_id = task->id, done.fence = task->fence, done.finished = true, done.result = "done";
  Poll(done);
  compilation.join();
}

// Another server with the same store has a worker that was given the task.
TEST_F(FarmTest, ATaskThatTheStoreHasGivenToAnotherIsGivenToNobody) {
  farm_.Start();
  Attach();
  std::thread compilation([&] { EXPECT_EQ(farm_.RunAll({Task("shared")}, {})->at(0).result, "done"); });
  std::vector<TaskRow> rows;
  while (rows.empty()) rows = state_.store().UnfinishedTasks().value();
  const auto call = [&](const TaskCall& one) { return state_.store().CallTasks({one}, 1)->at(0); };
  for (int64_t fence = 1; fence <= 2; ++fence) {  // of which this farm's scheduler knows nothing
    ASSERT_EQ(call(ClaimTask{rows[0].id, "elsewhere", absl::Minutes(1)}).fence, fence);
    if (fence == 1) ASSERT_TRUE(call(FailTask{{rows[0].id, "elsewhere", fence}}).held);
  }
  FarmPoll ask;
  EXPECT_FALSE(Poll(ask).task.has_value()) << "it is another's";
  ASSERT_TRUE(call(FailTask{{rows[0].id, "elsewhere", 2}}).held);
  EXPECT_FALSE(Poll(ask).task.has_value()) << "as far as this farm knows";
  Advance(absl::Seconds(31));
  ask.max_wait = absl::Seconds(30);
  const std::optional<TaskRow> task = Poll(ask).task;
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->fence, 3) << "the store's, not this scheduler's second";
  FarmPoll done;
  done.task_id = task->id, done.fence = task->fence, done.finished = true, done.result = "done";
  Poll(done);
  compilation.join();
  EXPECT_EQ(state_.store().FindTask(task->key).value()->state, TaskPhase::kDone);
}

TEST_F(FarmTest, ATaskIsStoredWithWhatItFoundOutAndLeavesNoFile) {
  farm_.Start();
  Attach();
  std::thread worker([&] { Work(2, [](const TaskRow&) { return "binary"; }); });
  ASSERT_TRUE(farm_.RunAll({Task("a"), Task("b")}, {}).ok());
  worker.join();
  const auto builds = store_.FindBuilds({std::string(64, 'a'), std::string(64, 'b')});
  EXPECT_THAT(builds.value(),
              ::testing::Each(::testing::ElementsAre(::testing::Field(&BuildRow::binary_digest, "binary"))));
  EXPECT_EQ(PayloadFilesThere(), 0);
}

TEST_F(FarmTest, ALateResultAddsNoRows) {
  farm_.Start();
  Attach();
  std::thread compilation([&] { EXPECT_EQ(farm_.RunAll({Task("a")}, {})->at(0).result, "second"); });
  FarmPoll ask;
  ask.max_wait = absl::Seconds(30);
  std::optional<TaskRow> task = Poll(ask).task;
  ASSERT_TRUE(task.has_value());
  FarmPoll done;
  done.task_id = task->id, done.fence = task->fence, done.finished = true, done.result = "bad";
  while (!(task = Poll(done).task).has_value()) done = ask;
  FarmPoll late = done;
  late.task_id = task->id, late.fence = task->fence - 1, late.finished = true, late.result = "late";
  EXPECT_EQ(Poll(late).task->fence, task->fence);
  EXPECT_TRUE(store_.FindBuilds({std::string(64, 'a')})->at(0).empty());
  late.fence = task->fence, late.result = "second", late.max_wait = absl::ZeroDuration();
  Poll(late);
  compilation.join();
  EXPECT_EQ(store_.FindBuilds({std::string(64, 'a')})->at(0).at(0).binary_digest, "second");
}

// As a power cut leaves files that were never synced.
TEST_F(FarmTest, ADamagedPayloadIsMadeAgainAndBlamesNoWorker) {
  farm_.Start();
  Attach();
  std::thread compilation([&] { EXPECT_EQ(farm_.RunAll({Task("a")}, {})->at(0).result, "done"); });
  FarmPoll ask;
  ask.max_wait = absl::Seconds(30);
  for (int times = 0; times < 3; ++times) {
    const std::optional<TaskRow> task = Poll(ask).task;
    ASSERT_TRUE(task.has_value());
    EXPECT_EQ(task->attempts, 1);
    EXPECT_EQ(state_.artifacts().Get(task->payload_digest).value(), "payload of a");
    const std::string path = state_.artifacts().payloads().Find(task->payload_digest)->path;
    FarmPoll end;
    end.task_id = task->id, end.fence = task->fence, end.finished = true;
    if (times == 0) {
      std::filesystem::remove(path);  // the worker could not read it
      end.result = absl::UnavailableError("cannot read the task's payload");
    } else if (times == 1) {
      std::ofstream(path) << "zeros";  // the worker has a result, which nobody can judge any more
      end.result = "stale";
    } else {
      end.result = "done";
    }
    Poll(end);
  }
  compilation.join();
  EXPECT_EQ(metrics_.Value(Metric::kTasks, {{"kind", "build"}, {"outcome", "payload_lost"}}), 2);
  EXPECT_EQ(metrics_.Value(Metric::kTasks, {{"kind", "build"}, {"outcome", "failed"}}), 0);
  EXPECT_EQ(farm_.WorkerStatuses()[0].view.tasks_failed, 0);
}

TEST_F(FarmTest, AfterARestartPayloadsOfUnfinishedTasksAreThereOrMadeAgain) {
  PayloadFiles& payloads = state_.artifacts().payloads();
  TaskRow kept, lost;
  kept.id = "t-kept", kept.key = Task("a").key, kept.payload_digest = payloads.Put("payload of a").value();
  lost.id = "t-lost", lost.key = Task("b").key, lost.payload_digest = Sha256Hex("an older payload of b");
  for (TaskRow* row : {&kept, &lost}) row->requirement = BuildRequirement("cpu"), row->timeout_ms = 120000;
  kept.state = TaskPhase::kLeased, kept.worker = "w1", kept.description = "a";
  ASSERT_TRUE(testing::Add(state_.store(), {kept, lost}).ok());
  kept.fence = 1;
  const std::string over = payloads.Put("payload of a task that is over").value();
  // The next start. The files have no user until the tasks are restored.
  const auto artifacts = ArtifactStore::Open(state_.folder() + "/blobs", &state_.store()).value();
  Farm farm(
      &store_, artifacts.get(), &metrics_,
      [](const TaskRow&, const std::string&, const std::string&, const AttachedWorker&) { return AcceptedRows(); });
  ASSERT_TRUE(farm.Restore().ok());
  EXPECT_EQ(artifacts->Get(kept.payload_digest).value(), "payload of a");
  EXPECT_FALSE(artifacts->payloads().Find(over).has_value());
  farm.Start();
  AttachedWorker builder;
  builder.id = builder.name = "w1", builder.toolchain_kinds = {"cpu"};
  ASSERT_TRUE(farm.Register(builder).ok());
  std::thread compilation([&] {
    const auto outcomes = farm.RunAll({Task("a"), Task("b")}, {});
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    EXPECT_EQ(outcomes->at(0).result, "finished over the restart");
    EXPECT_EQ(outcomes->at(1).result, "from the new payload");
  });
  // By then the compilation waits for its first task.
  while (!artifacts->payloads().Find(Sha256Hex("payload of b")).has_value()) std::this_thread::yield();
  FarmPoll end;
  end.task_id = kept.id, end.fence = kept.fence, end.finished = true, end.max_wait = absl::Seconds(30);
  end.result = "finished over the restart";
  const std::optional<TaskRow> next = PollOf(farm, end, "w1").task;
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->id, lost.id);
  EXPECT_EQ(artifacts->Get(next->payload_digest).value(), "payload of b");
  end.task_id = next->id, end.fence = next->fence, end.result = "from the new payload";
  end.max_wait = absl::ZeroDuration();
  PollOf(farm, end, "w1");
  compilation.join();
  EXPECT_EQ(PayloadFilesThere(), 0);
}

TEST_F(FarmTest, AFenceThatCannotBeReadIsNoFence) {
  store_.unreadable = true;
  EXPECT_EQ(farm_.Restore().code(), absl::StatusCode::kUnavailable);
}

TEST_F(FarmTest, AResultFromAnotherWorkerIsNotAccepted) {
  farm_.Start();
  Attach("w1");
  Attach("w2");
  std::thread compilation([&] {
    const auto outcomes = farm_.RunAll({Task("a")}, {});
    EXPECT_EQ(outcomes->at(0).result, "true");
    EXPECT_EQ(outcomes->at(0).worker, "w1");
  });
  FarmPoll ask;
  ask.max_wait = absl::Seconds(30);
  const std::optional<TaskRow> task = Poll(ask).task;
  ASSERT_TRUE(task.has_value());
  FarmPoll done;
  done.task_id = task->id, done.fence = task->fence, done.finished = true, done.result = "forged";
  Poll(done, "w2");
  EXPECT_EQ(metrics_.Value(Metric::kTasks, {{"kind", "build"}, {"outcome", "stale"}}), 1);
  done.result = "true";
  Poll(done, "w1");
  compilation.join();
}

TEST_F(FarmTest, TheLateEndOfAnOldCallDoesNotDisconnectItsWorker) {
  farm_.Start();
  Attach();
  const auto old_call = std::make_shared<std::atomic<bool>>(false);
  absl::Notification old_answered;
  FarmPoll old_poll;
  old_poll.worker_id = "w1", old_poll.gone = old_call, old_poll.max_wait = absl::Seconds(30);
  old_poll.reply = [&](const FarmAnswer&) { old_answered.Notify(); };
  farm_.Poll(old_poll);
  FarmPoll ask;
  Poll(ask);  // by another connection, while the server still holds the call of the first
  *old_call = true;
  farm_.HungUp("w1", old_call);
  EXPECT_EQ(farm_.WorkersThatOffer(BuildRequirement("cpu")), 1);
  old_answered.WaitForNotification();

  const auto call = std::make_shared<std::atomic<bool>>(false);
  absl::Notification answered;
  FarmPoll poll;
  poll.worker_id = "w1", poll.gone = call, poll.max_wait = absl::Seconds(30);
  poll.reply = [&](const FarmAnswer&) { answered.Notify(); };
  farm_.Poll(poll);
  *call = true;
  farm_.HungUp("w1", call);
  EXPECT_EQ(farm_.WorkersThatOffer(BuildRequirement("cpu")), 0) << "its latest call";
  answered.WaitForNotification();
}

TEST_F(FarmTest, RandomIdsDoNotChooseAmongDevices) {
  farm_.Start();
  AttachDevice("1", "zebra"), AttachDevice("2", "ant"), AttachDevice("3", "bee");
  EXPECT_EQ(farm_.FindDevice("cpu")->device.name, "ant");
  AttachDevice("0", "bee");
  EXPECT_EQ(farm_.FindDevice("cpu")->device.name, "bee") << "two workers have it";
  const std::string fingerprint = farm_.FindDevice("cpu")->fingerprint;
  EXPECT_THAT(farm_.OtherDevices("cpu", fingerprint),
              ::testing::UnorderedElementsAre(HasSubstr("ant ("), HasSubstr("zebra (")));
}

TEST_F(FarmTest, RatesOfASecondWorkerOfAKindAreComparedWithTheFirst) {
  farm_.Start();
  AttachedWorker worker;
  worker.measure_kinds = {"cpu"};
  worker.fingerprint = worker.device.Fingerprint();
  for (const auto& [name, speed] :
       std::map<std::string, double>{{"first", 100e9}, {"like it", 150e9}, {"slow", 30e9}}) {
    worker.id = worker.name = name, worker.source = "token " + name, worker.device.fma_f32_flops_per_s = speed;
    ASSERT_TRUE(farm_.Register(worker).ok());
  }
  std::map<std::string, std::string> trust;
  for (const Farm::WorkerStatusRow& row : farm_.WorkerStatuses()) trust[row.worker.name] = row.trust;
  EXPECT_EQ(trust["first"], "new");
  EXPECT_EQ(trust["like it"], "new");
  EXPECT_EQ(trust["slow"], "new; its device has 30 instead of 100 GFLOP/s of a core, as 'first' says");
  worker.device.fma_f32_flops_per_s = 90e9;  // it measures anew
  ASSERT_TRUE(farm_.Register(worker).ok());
  for (const Farm::WorkerStatusRow& row : farm_.WorkerStatuses()) EXPECT_EQ(row.trust, "new") << row.worker.name;
}

TEST_F(FarmTest, AKindThatNoWorkerEverHadIsWaitedFor) {
  farm_.Start();
  std::atomic<bool> cancel{false};
  std::thread job([&] { farm_.AwaitDevice("tpu", absl::Hours(1), [&] { return cancel.load(); }); });
  FarmWait wait;
  wait.cancelled = [&] { return cancel.load(); };
  FarmTask task = Task("a");
  task.device_kind = "npu", task.requirement = BuildRequirement("npu");
  std::thread compilation([&] { EXPECT_FALSE(farm_.RunAll({task}, wait).ok()); });
  // The alert FusionNoWorker needs both series.
  for (const char* kind : {"tpu", "npu"}) {
    while (metrics_.Value(Metric::kQueueDepth, {{"device_class", kind}}) != 1) std::this_thread::yield();
    EXPECT_EQ(metrics_.Value(Metric::kWorkers, {{"device_class", kind}, {"state", "idle"}}), 0);
    EXPECT_THAT(metrics_.Text(),
                HasSubstr(absl::StrCat("fusion_workers{device_class=\"", kind, "\",state=\"idle\"} 0")));
  }
  cancel = true;
  job.join();
  compilation.join();
}

}  // namespace
}  // namespace fusion
