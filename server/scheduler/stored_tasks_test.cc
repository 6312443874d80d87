// The store follows the scheduler: after each round its rows are the scheduler's, and it refuses exactly what the
// scheduler refuses. Random schedulers are driven on SQLite, one alone and two on one database.
#include "server/scheduler/stored_tasks.h"

#include <map>
#include <random>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "db/stores/testing/two_openings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/scheduler/scheduler.h"

namespace fusion {
namespace {

const absl::Time kBegin = absl::UnixEpoch() + absl::Hours(1);

TaskRow Row(TaskPhase state, int64_t fence, int attempts, const std::string& worker = "w") {
  TaskRow row;
  row.id = "t", row.key = "k", row.payload_digest = "p";
  row.state = state, row.fence = fence, row.attempts = attempts, row.worker = worker;
  return row;
}

// The kinds of the calls that follow from one row after the other.
std::vector<std::vector<size_t>> KindsOf(const std::vector<TaskRow>& rows) {
  StoredTasks stored;
  std::vector<std::vector<size_t>> kinds;
  for (const TaskRow& row : rows) {
    std::vector<TaskCall> calls;
    stored.Follow(row, {}, kBegin, &calls);
    kinds.emplace_back();
    for (const TaskCall& call : calls) kinds.back().push_back(call.index());
  }
  return kinds;
}

constexpr size_t kQueue = 0, kClaim = 1, kRenew = 2, kComplete = 3, kFail = 4;
using Kinds = std::vector<std::vector<size_t>>;

TEST(StoredTasks, ATrialIsQueuedClaimedAndDone) {
  EXPECT_EQ(KindsOf({Row(TaskPhase::kQueued, 0, 0, ""), Row(TaskPhase::kLeased, 1, 1), Row(TaskPhase::kDone, 1, 1)}),
            (Kinds{{kQueue}, {kClaim}, {kComplete}}));
  EXPECT_EQ(KindsOf({Row(TaskPhase::kLeased, 1, 1), Row(TaskPhase::kLeased, 2, 2, "v"), Row(TaskPhase::kQueued, 2, 2)}),
            (Kinds{{kQueue, kClaim}, {kFail, kClaim}, {kFail}}));
  EXPECT_EQ(KindsOf({Row(TaskPhase::kCancelled, 0, 0, "")}), (Kinds{{}})) << "nobody has stored it";
  EXPECT_EQ(KindsOf({Row(TaskPhase::kLeased, 1, 1), Row(TaskPhase::kLeased, 1, 1), Row(TaskPhase::kPoisoned, 1, 1)}),
            (Kinds{{kQueue, kClaim}, {}, {kFail}}));
  EXPECT_EQ(KindsOf({Row(TaskPhase::kLeased, 2, 1), Row(TaskPhase::kDone, 2, 0, "earlier")}),
            (Kinds{{kQueue, kClaim}, {kFail, kComplete}}))
      << "by the word of a worker that had it before";
}

TEST(StoredTasks, OnlyLongTasksAreRenewed) {
  StoredTasks stored;
  std::vector<TaskCall> calls;
  stored.Follow(Row(TaskPhase::kLeased, 1, 1), {}, kBegin, &calls);
  calls.clear();
  stored.Renew(kBegin + absl::Seconds(59), &calls);
  EXPECT_TRUE(calls.empty());
  stored.Renew(kBegin + absl::Seconds(70), &calls);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(std::get<RenewTask>(calls[0]).claim.worker, "w");
  stored.Renew(kBegin + absl::Seconds(71), &calls);
  EXPECT_EQ(calls.size(), 1u);
}

// A scheduler with its store, and workers that call it.
class Server {
 public:
  Server(std::mt19937* random, std::string name, Store* store)
      : random_(random), name_(std::move(name)), store_(store), scheduler_({}, 0) {}

  void Step(absl::Time now) {
    const std::string worker = absl::StrCat(name_, Below(3)), id = Id();
    const TaskRow* row = scheduler_.Find(id);
    // Mostly of the one who has it, under its fence.
    const std::string holder = row != nullptr && Below(5) > 0 ? row->worker : worker;
    const int64_t fence = (row == nullptr ? 0 : row->fence) - (Below(6) == 0);
    switch (Below(12)) {
      case 0:
      case 1: {
        TaskRow task;
        task.key = absl::StrCat(std::string(22, 'k'), Below(4)), task.requirement = "measure";
        task.payload_digest = absl::StrCat("payload ", Below(3)), task.timeout_ms = 1000;
        task.job = name_;
        scheduler_.Add(task, now);
        break;
      }
      case 2:
      case 3:
      case 4:
        asking_.insert(worker);
        break;
      case 5:
        (void)scheduler_.Renew(holder, id, fence, TaskStage::kRunning, now);
        break;
      case 6:
      case 7:
        (void)scheduler_.Complete(holder, id, fence, now);
        break;
      case 8:
        (void)scheduler_.Fail(holder, id, fence, absl::UnavailableError("broken"), now);
        break;
      case 9:
        (void)scheduler_.Again(holder, id, fence, "why", Below(2) == 0, now);
        if (Below(2) == 0 && scheduler_.TakesPayload(id)) scheduler_.CompleteQueued(id, absl::StrCat(name_, 0), now);
        break;
      case 10:
        if (Below(2) == 0) (void)scheduler_.LosePayload(holder, id, fence, now);
        if (scheduler_.TakesPayload(id)) scheduler_.GivePayload(id, absl::StrCat("payload ", Below(3)), 1);
        break;
      default:
        if (Below(3) == 0) scheduler_.Release(id, now, name_);
        if (Below(3) == 0 && scheduler_.TakesPayload(id)) scheduler_.GiveUpQueued(id, "given up", now);
        break;
    }
  }
  // Gives out tasks and stores what has changed, as a farm does: nobody can say anything of a lease before it is
  // stored.
  void Round(absl::Time now) {
    scheduler_.Tick(now);
    for (const std::string& worker : std::exchange(asking_, {})) {
      scheduler_.Seen(worker, {"measure"}, false, now);
      scheduler_.SetSource(worker, worker);
      (void)scheduler_.Assign(worker, now);
    }
    std::vector<TaskCall> calls;
    std::vector<TaskRow> rows = scheduler_.TakeChanged();
    for (const TaskRow& row : rows) stored_.Follow(row, {}, now, &calls);
    stored_.Renew(now, &calls);
    const std::vector<TaskAnswer> answers = store_->CallTasks(calls, 1).value();
    for (size_t i = 0; i < calls.size(); ++i) ++(answers[i].held ? held : refused)[calls[i].index()];
    const StoredTasks::Surprises surprises = stored_.Take(calls, answers);
    for (const auto& [id, fence] : surprises.claims) {
      if (fence.has_value()) {
        scheduler_.TakeFence(id, *fence);
      } else {
        scheduler_.LoseClaim(id, now);
      }
    }
    for (const TaskRow& row : rows) {
      keys_.insert(row.key);
      if (row.state > TaskPhase::kLeased) scheduler_.Release(row.id, now, name_);
    }
  }
  // Each task that a worker has is its own in the store, too, and alone also all others are the same.
  void Compare(bool alone) {
    for (const std::string& key : keys_) {
      const std::optional<TaskRow> stored = store_->FindTask(key).value();
      if (!stored.has_value()) continue;  // it was cancelled before anybody stored it
      const TaskRow* row = scheduler_.Find(stored->id);
      if (row == nullptr || (!alone && row->state != TaskPhase::kLeased)) continue;
      ASSERT_EQ(stored->state, row->state) << stored->id;
      ASSERT_EQ(stored->worker, row->worker) << stored->id;
      ASSERT_EQ(stored->fence, row->fence) << stored->id;
      if (!alone) continue;
      ASSERT_EQ(stored->attempts, row->attempts) << stored->id;
      ASSERT_EQ(stored->evidence, row->evidence) << stored->id;
      ASSERT_EQ(stored->payload_digest, row->payload_digest) << stored->id;
    }
  }
  std::map<size_t, int> held, refused;  // by kind of call

 private:
  int Below(int n) { return static_cast<int>((*random_)() % static_cast<unsigned>(n)); }
  std::string Id() { return absl::StrCat("t-", std::string(22, 'k'), Below(4), Below(4) == 0 ? "+" : ""); }

  std::mt19937* const random_;
  const std::string name_;
  Store* const store_;
  Scheduler scheduler_;
  StoredTasks stored_;
  std::set<std::string> asking_;
  std::set<std::string> keys_;
};

TEST(StoredTasks, TheStoreOfOneSchedulerRefusesNothingAndHasItsRows) {
  std::map<size_t, int> held;
  for (unsigned seed = 0; seed < 20; ++seed) {
    absl::Time now = kBegin;
    std::mt19937 random(seed);
    testing::TwoOpenings openings([&] { return now; });
    Server server(&random, "a", &openings.of(0));
    for (int round = 0; round < 60; ++round) {
      for (unsigned step = random() % 12; step > 0; --step) server.Step(now);
      server.Round(now);
      server.Compare(true);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed << ", round " << round;
      now += absl::Seconds(random() % 15);
    }
    for (const auto& [kind, count] : server.refused)
      ADD_FAILURE() << "seed " << seed << ": " << count << " of " << kind;
    for (const auto& [kind, count] : server.held) held[kind] += count;
  }
  for (const size_t kind : {kQueue, kClaim, kComplete, kFail}) EXPECT_GT(held[kind], 100) << kind;
}

// The fences that workers get are the store's, and nobody goes on with a task that is another's.
TEST(StoredTasks, TwoSchedulersOfOneStoreHaveNoTaskTwice) {
  std::map<size_t, int> held, refused;
  for (unsigned seed = 0; seed < 20; ++seed) {
    absl::Time now = kBegin;
    std::mt19937 random(seed);
    testing::TwoOpenings openings([&] { return now; });
    Server a(&random, "a", &openings.of(0)), b(&random, "b", &openings.of(1));
    for (int round = 0; round < 80; ++round) {
      Server& server = random() % 2 == 0 ? a : b;
      for (unsigned step = random() % 12; step > 0; --step) server.Step(now);
      server.Round(now);
      server.Compare(false);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed << ", round " << round;
      now += absl::Seconds(random() % (round % 20 == 19 ? 200 : 8));
    }
    for (const Server* server : {&a, &b}) {
      for (const auto& [kind, count] : server->held) held[kind] += count;
      for (const auto& [kind, count] : server->refused) refused[kind] += count;
    }
  }
  for (const size_t kind : {kQueue, kClaim, kComplete, kFail}) EXPECT_GT(held[kind], 100) << kind;
  EXPECT_GT(refused[kClaim], 20);
  EXPECT_GT(refused[kQueue], 20);
}

}  // namespace
}  // namespace fusion
