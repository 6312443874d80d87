// TaskClaims' own rules, and SQLite's calls held against them: random calls about few tasks, through two openings of
// one database, with crashes between the calls.
#include "db/stores/task_claims.h"

#include <map>
#include <random>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "db/stores/testing/two_openings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

constexpr absl::Duration kLease = absl::Seconds(30);
const absl::Time kBegin = absl::UnixEpoch() + absl::Hours(1);

TaskRow Row(const std::string& id, const std::string& key) {
  TaskRow row;
  row.id = id, row.key = key, row.payload_digest = "payload";
  return row;
}

TEST(TaskClaims, OneWorkerAtATimeHasATaskWhileItsLeaseLasts) {
  TaskClaims claims;
  ASSERT_TRUE(claims.Call(QueueTask{Row("t", "k")}, 1, kBegin).held);
  EXPECT_EQ(claims.Call(ClaimTask{"t", "a", kLease}, 1, kBegin).fence, 1);
  EXPECT_FALSE(claims.Call(ClaimTask{"t", "b", kLease}, 1, kBegin + kLease - absl::Milliseconds(1)).held);
  EXPECT_TRUE(claims.Call(RenewTask{{"t", "a", 1}, kLease}, 1, kBegin + absl::Seconds(9)).held);
  EXPECT_FALSE(claims.Call(ClaimTask{"t", "b", kLease}, 1, kBegin + kLease).held);
  EXPECT_FALSE(claims.Call(ClaimTask{"unknown", "b", kLease}, 1, kBegin).held);
  const absl::Time late = kBegin + 2 * kLease;
  EXPECT_TRUE(claims.Call(RenewTask{{"t", "a", 1}, kLease}, 1, late).held) << "nobody else has wanted it";
  EXPECT_EQ(claims.Call(ClaimTask{"t", "b", kLease}, 1, late + kLease).fence, 2);
  for (const TaskCall& call : std::vector<TaskCall>{RenewTask{{"t", "a", 1}, kLease}, FailTask{{"t", "a", 1}},
                                                    CompleteTask{{"t", "a", 1}, "a", {}}, FailTask{{"t", "", 2}}}) {
    EXPECT_FALSE(claims.Call(call, 1, late).held) << "call " << call.index() << " of a claim that is lost";
  }
  EXPECT_EQ(claims.Find("t")->attempts, 2);
  EXPECT_TRUE(claims.Call(CompleteTask{{"t", "b", 2}, "b", {}}, 1, late).held);
  EXPECT_FALSE(claims.Call(ClaimTask{"t", "b", kLease}, 1, late + absl::Hours(1)).held) << "it is final";
}

TEST(TaskClaims, LeasesFromBeforeTheMachineWasStartedAreOver) {
  TaskClaims claims;
  ASSERT_TRUE(claims.Call(QueueTask{Row("t", "k")}, 1, kBegin).held);
  ASSERT_TRUE(claims.Call(ClaimTask{"t", "a", kLease}, 1, kBegin + absl::Hours(100)).held);
  EXPECT_EQ(claims.Call(ClaimTask{"t", "b", kLease}, 1, kBegin).fence, 2);
}

// A database that two schedulers have opened, and what they may say to it.
class TwoSchedulers {
 public:
  explicit TwoSchedulers(int seed) : random_(seed) {}

  // One to three calls in one transaction.
  void Step() {
    if (Below(40) == 0) return openings_.Crash();
    if (Below(40) == 0) now_ = kBegin + absl::Minutes(Below(10));  // the machine starts anew
    now_ += absl::Seconds(Below(25));
    ++steps_;
    std::vector<TaskCall> calls;
    for (int i = Below(3); i >= 0; --i) calls.push_back(Draw());
    const std::vector<TaskAnswer> answers = store().CallTasks(calls, steps_).value();
    ASSERT_EQ(answers.size(), calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      const bool anothers = IsAnothers(calls[i]);
      const TaskAnswer expected = claims_.Call(calls[i], steps_, now_);
      ASSERT_EQ(answers[i].held, expected.held)
          << "step " << steps_ << ", call " << i << " of kind " << calls[i].index();
      ASSERT_EQ(answers[i].fence, expected.fence) << "step " << steps_;
      ++(expected.held ? held : refused)[calls[i].index()];
      taken_over += expected.held && anothers;
      if (expected.held && std::holds_alternative<ClaimTask>(calls[i])) {
        const auto& claim = std::get<ClaimTask>(calls[i]);
        last_[claim.task] = {claim.task, claim.worker, expected.fence};
      }
    }
  }
  // Everything that can be read is what the model says.
  void Compare() {
    ASSERT_EQ(store().LastFence().value(), claims_.last_fence());
    std::vector<std::string> unfinished, expected;
    const std::vector<TaskRow> rows = store().UnfinishedTasks().value();
    for (const TaskRow& row : rows) unfinished.push_back(row.id);
    for (const TaskClaims::Task& task : claims_.tasks()) {
      if (task.row.state <= TaskPhase::kLeased) expected.push_back(task.row.id);
    }
    ASSERT_EQ(unfinished, expected);
    const std::vector<SourceRow> sources = store().Sources().value();
    ASSERT_EQ(sources.size(), claims_.sources().size());
    for (const SourceRow& row : sources) {
      ASSERT_EQ(row.strikes, claims_.sources().at(row.source).strikes);
      ASSERT_EQ(row.batches, claims_.sources().at(row.source).batches);
    }
    for (int key = 0; key < kKeys; ++key) {
      const std::optional<TaskRow> row = store().FindTask(absl::StrCat("k", key)).value();
      const TaskRow* model = claims_.FindKey(absl::StrCat("k", key));
      ASSERT_EQ(row.has_value(), model != nullptr);
      if (model == nullptr) continue;
      ASSERT_EQ(row->id, model->id);
      ASSERT_EQ(row->state, model->state) << row->id;
      ASSERT_EQ(row->worker, model->worker) << row->id;
      ASSERT_EQ(row->fence, model->fence) << row->id;
      ASSERT_EQ(row->attempts, model->attempts) << row->id;
      ASSERT_EQ(row->evidence, model->evidence) << row->id;
      ASSERT_EQ(row->payload_digest, model->payload_digest) << row->id;
      ASSERT_EQ(row->updated_ms, model->updated_ms) << row->id;
    }
  }
  std::map<size_t, int> held, refused;  // by kind of call
  int taken_over = 0;

 private:
  static constexpr int kKeys = 4;

  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Store& store() { return openings_.of(steps_ % 2); }
  std::string Worker() { return Below(2) == 0 ? "a" : "b"; }
  // Each key has two ids.
  std::string Id() { return absl::StrCat("t", Below(kKeys), Below(4) == 0 ? "+" : ""); }
  // Mostly the latest claim of a task, sometimes an older one, another's or nobody's.
  TaskClaim Claim() {
    const std::string id = Id();
    TaskClaim claim = last_.count(id) > 0 ? last_.at(id) : TaskClaim{id, "a", 0};
    if (Below(6) == 0) claim.worker = Worker();
    if (Below(6) == 0) claim.fence -= 1;
    if (Below(5) == 0) claim.worker = "";
    return claim;
  }
  TaskCall Draw() {
    switch (Below(9)) {
      case 0:
      case 1: {
        const std::string id = Id();
        TaskRow row = Row(id, absl::StrCat("k", id.substr(1, 1)));
        row.payload_digest = absl::StrCat("payload ", steps_);
        return QueueTask{row};
      }
      case 2:
      case 3:
      case 4:
        return ClaimTask{Id(), Worker(), kLease};
      case 5:
        return RenewTask{Claim(), kLease};
      case 6:
        return CompleteTask{Claim(), Worker(), {}};
      case 7:
        return NoteSource{{absl::StrCat("source ", Below(3)), Below(3), 0, steps_}};
      default: {
        const TaskPhase then =
            Below(3) == 0 ? (Below(2) == 0 ? TaskPhase::kPoisoned : TaskPhase::kCancelled) : TaskPhase::kQueued;
        const TaskClaim claim = Claim();
        return FailTask{claim, then, claim.worker.empty() || Below(3) > 0, absl::StrCat("step ", steps_, "\n")};
      }
    }
  }
  bool IsAnothers(const TaskCall& call) const {
    const auto* claim = std::get_if<ClaimTask>(&call);
    const TaskRow* row = claim == nullptr ? nullptr : claims_.Find(claim->task);
    return row != nullptr && row->state == TaskPhase::kLeased;
  }

  std::mt19937 random_;
  absl::Time now_ = kBegin;
  testing::TwoOpenings openings_{[this] { return now_; }};
  TaskClaims claims_;
  std::map<std::string, TaskClaim> last_;  // by task
  int steps_ = 0;
};

TEST(TaskClaims, SqliteDoesWhatTheySay) {
  std::map<size_t, int> held, refused;
  int taken_over = 0;
  for (int seed = 0; seed < 16; ++seed) {
    TwoSchedulers schedulers(seed);
    for (int step = 0; step < 120; ++step) {
      schedulers.Step();
      if (step % 10 == 9) schedulers.Compare();
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << step;
    }
    for (size_t kind = 0; kind < std::variant_size_v<TaskCall>; ++kind) {
      held[kind] += schedulers.held[kind], refused[kind] += schedulers.refused[kind];
    }
    taken_over += schedulers.taken_over;
  }
  for (size_t kind = 0; kind < std::variant_size_v<TaskCall>; ++kind) {
    EXPECT_GT(held[kind], 20) << kind;
    if (kind != TaskCall(NoteSource()).index()) EXPECT_GT(refused[kind], 20) << kind;
  }
  EXPECT_GT(taken_over, 10);
}

}  // namespace
}  // namespace fusion
