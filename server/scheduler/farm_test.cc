#include "server/scheduler/farm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  void Attach() {
    AttachedWorker worker;
    worker.id = "w1", worker.name = "worker", worker.toolchain_kinds = {"cpu"};
    ASSERT_TRUE(farm_.Register(worker).ok());
  }

  FarmAnswer Poll(const FarmPoll& given) {
    FarmPoll poll = given;
    FarmAnswer answer;
    absl::Notification replied;
    poll.worker_id = "w1";
    poll.gone = std::make_shared<std::atomic<bool>>(false);
    poll.reply = [&](const FarmAnswer& got) {
      answer = got;
      replied.Notify();
    };
    farm_.Poll(std::move(poll));
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

  testing::TemporaryState state_;
  Metrics metrics_;
  Farm farm_{&state_.store(), &state_.artifacts(), &metrics_,
             [](const TaskRow&, const std::string& result, const AttachedWorker&) {
               return result == "bad" ? absl::UnavailableError("a bad result") : absl::OkStatus();
             }};
};

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

}  // namespace
}  // namespace fusion
