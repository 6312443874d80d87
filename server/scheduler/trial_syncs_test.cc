// How often the disk is waited for in a trial: a measurement task from its being queued to its rows.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "proto/worker.pb.h"
#include "server/scheduler/accept_result.h"
#include "server/scheduler/farm.h"
#include "server/testing/temporary_state.h"

namespace {

std::atomic<int> g_syncs{0};

// A checkpoint syncs the database's own file; a commit syncs its log.
int Count(int fd, int call) {
  char path[4096] = {};
  if (readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), path, sizeof path - 1) < 0) path[0] = 0;
  if (!absl::EndsWith(path, "fusion.db")) ++g_syncs;
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

// These stand before the C library's, also for SQLite.
extern "C" int fsync(int fd) { return Count(fd, SYS_fsync); }
extern "C" int fdatasync(int fd) { return Count(fd, SYS_fdatasync); }

namespace fusion {
namespace {

class TrialSyncsTest : public ::testing::Test {
 protected:
  FarmAnswer Poll(const FarmPoll& given) {
    FarmPoll poll = given;
    FarmAnswer answer;
    absl::Notification replied;
    poll.worker_id = "w", poll.gone = std::make_shared<std::atomic<bool>>(false);
    poll.reply = [&](const FarmAnswer& got) {
      answer = got;
      replied.Notify();
    };
    farm_.Poll(std::move(poll));
    replied.WaitForNotification();
    return answer;
  }
  static FarmTask Trial(int number) {
    v1::MeasurePayload payload;
    v1::MeasureItem& item = *payload.add_items();
    item.set_question_key(absl::StrCat("question ", number));
    item.set_bundle(std::string(20000, 'b'));
    FarmTask task;
    task.kind = TaskType::kMeasure, task.key = item.question_key(), task.device_kind = "cpu";
    task.requirement = MeasureRequirement("cpu", "device"), task.payload = payload.SerializeAsString();
    return task;
  }
  static std::string Measured() {
    v1::MeasureResults results;
    v1::MeasureResult& result = *results.add_results();
    for (int i = 0; i < 9; ++i) result.add_samples_ns(100 + i);
    return results.SerializeAsString();
  }

  testing::TemporaryState state_;
  Metrics metrics_;
  Farm farm_{
      &state_.store(), &state_.artifacts(), &metrics_,
      [this](const TaskRow& task, const std::string& payload, const std::string& result, const AttachedWorker& worker) {
        return AcceptTaskResult(state_.artifacts(), task, payload, result, worker);
      }};
};

TEST_F(TrialSyncsTest, ATrialWaitsForTheDiskThreeTimesAtMost) {
  constexpr int kTrials = 10;
  farm_.Start();
  AttachedWorker worker;
  worker.id = worker.name = "w", worker.measure_kinds = {"cpu"}, worker.fingerprint = "device";
  worker.device.kind = "cpu";
  ASSERT_TRUE(farm_.Register(worker).ok());
  FarmPoll ask;
  ask.max_wait = absl::ZeroDuration();
  Poll(ask);  // the worker is known, and asks for nothing while a task is being added
  g_syncs = 0;
  for (int i = 0; i < kTrials; ++i) {
    std::thread job([&] { EXPECT_TRUE(farm_.RunAll({Trial(i)}, {})->at(0).status.ok()); });
    std::optional<TaskRow> task;
    while (!task.has_value()) task = Poll(ask).task;
    FarmPoll done = ask;
    done.task_id = task->id, done.fence = task->fence, done.finished = true, done.result = Measured();
    Poll(done);
    job.join();
  }
  EXPECT_EQ(state_.store().CountMeasurements()->measurements, kTrials);
  EXPECT_LE(g_syncs.load(), 3 * kTrials);
  EXPECT_GE(g_syncs.load(), 2 * kTrials) << "the lease and the rows are on disk before anybody hears of them";
}

}  // namespace
}  // namespace fusion
