#include "server/scheduler/farm_builds.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "db/stores/testing/add_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/log/log.h"
#include "server/scheduler/accept_result.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// How a builder makes a binary of a text; an empty one is a failure.
using Make = std::function<std::string(const std::string& source)>;
std::string Honest(const std::string& source) { return absl::StrCat("binary of ", source); }
std::string Poisoned(const std::string& source) { return absl::StrCat("poison in ", source); }
std::string Failing(const std::string&) { return ""; }

struct BuilderFacts {
  std::string id;
  std::string token;
  bool trusted = true;
  std::string toolchain = "clang";
  bool reproduces = true;
};

class FarmBuildsTest : public ::testing::Test {
 protected:
  FarmBuildsTest() {
    EXPECT_TRUE(farm_.Restore().ok());
    farm_.Start();
    job_.farm = &farm_, job_.store = &state_.store(), job_.artifacts = &state_.artifacts(), job_.metrics = &metrics_;
    job_.id = "j";
    job_.queue_timeout = absl::Milliseconds(1);
    job_.progress = [](const ProgressEvent&) {};
    job_.check_one_build_in = 0;
  }
  ~FarmBuildsTest() override {
    stopping_ = true;
    farm_.Stop();
    for (std::thread& thread : threads_) thread.join();
  }

  // A worker that does build tasks until the test ends. It is attached when this returns.
  void Attach(const BuilderFacts& facts, const Make& make) {
    AttachedWorker worker;
    worker.id = worker.name = facts.id;
    worker.toolchain_kinds = {"cpu"};
    worker.toolchains["cpu"] = {facts.toolchain, facts.reproduces};
    worker.token = facts.token;
    worker.trusted_builds = facts.trusted;
    ASSERT_TRUE(farm_.Register(worker).ok());
    threads_.emplace_back([this, id = facts.id, make] { Work(id, make); });
  }

  absl::StatusOr<std::vector<std::string>> Build(const std::vector<std::string>& sources) {
    std::vector<BuildUnit> units;
    for (const std::string& source : sources) units.push_back({"cpu", "x86-64-v3", source});
    return FarmToolchain(job_).Build(units);
  }
  std::vector<std::string> DoneBy(const std::string& id) {
    absl::MutexLock lock(&mutex_);
    return done_[id];
  }
  std::string Logged() {
    absl::MutexLock lock(&mutex_);
    return logged_;
  }

  void Work(const std::string& id, const Make& make) {
    FarmPoll next;
    while (!stopping_) {
      next.worker_id = id;
      next.max_wait = absl::Milliseconds(200);
      next.gone = std::make_shared<std::atomic<bool>>(false);
      FarmAnswer answer;
      absl::Notification replied;
      next.reply = [&](const FarmAnswer& got) {
        answer = got;
        replied.Notify();
      };
      farm_.Poll(std::move(next));
      replied.WaitForNotification();
      next = FarmPoll();
      if (!answer.task.has_value()) continue;
      next.task_id = answer.task->id, next.fence = answer.task->fence, next.finished = true;
      v1::BuildPayload payload;
      EXPECT_TRUE(payload.ParseFromString(state_.artifacts().Get(answer.task->payload_digest).value_or("")));
      v1::BuildResult built;
      for (const v1::BuildUnitProto& unit : payload.units()) {
        built.add_binaries(make(unit.source()));
        absl::MutexLock lock(&mutex_);
        done_[id].push_back(unit.source());
      }
      next.result = built.SerializeAsString();
      if (built.binaries(0).empty()) next.result = absl::InternalError("the text has an error");
    }
  }

  absl::Mutex mutex_;
  std::map<std::string, std::vector<std::string>> done_ ABSL_GUARDED_BY(mutex_);  // by worker
  std::string logged_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  testing::TemporaryState state_;
  Metrics metrics_;
  Farm farm_{
      &state_.store(),
      &state_.artifacts(),
      &metrics_,
      [this](const TaskRow& task, const std::string& payload, const std::string& result, const AttachedWorker& worker) {
        return AcceptTaskResult(state_.artifacts(), task, payload, result, worker);
      },
      {},
      [this](const LogLine& line) {
        absl::MutexLock lock(&mutex_);
        if (line.level == LogLevel::kError) {
          absl::StrAppend(&logged_, line.message, " ", line.fields.back().value, "\n");
        }
      }};
  FarmJob job_;
  std::vector<std::thread> threads_;
};

TEST_F(FarmBuildsTest, TheSocketsWorkerSufficesAndIsNeverChecked) {
  job_.check_one_build_in = 1;
  Attach({"local", ""}, Honest);
  Attach({"other", "t1"}, Honest);
  std::vector<std::string> sources;
  for (int i = 0; i < 20; ++i) sources.push_back(absl::StrCat("unit ", i % 15));
  const auto first = Build(sources);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->at(0), "binary of unit 0");
  EXPECT_EQ(first->at(16), "binary of unit 1") << "equal units once";
  const size_t built = DoneBy("local").size() + DoneBy("other").size();
  EXPECT_GE(built, 15u);
  ASSERT_TRUE(Build(sources).ok());
  EXPECT_EQ(DoneBy("local").size() + DoneBy("other").size(), built) << "the database answers";
}

TEST_F(FarmBuildsTest, UntrustedBuildersCountWhenTwoAgree) {
  Attach({"a", "t1", false}, Honest);
  Attach({"a's twin", "t1", false}, Honest);
  const auto alone = Build({"x"});
  EXPECT_EQ(alone.status().code(), absl::StatusCode::kFailedPrecondition) << "one token is one word";
  EXPECT_THAT(std::string(alone.status().message()), HasSubstr("untrusted builders (token t1)"));
  Attach({"b", "t2", false}, Honest);
  const auto both = Build({"x", "y"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(*both, ElementsAre("binary of x", "binary of y"));
  EXPECT_EQ(Logged(), "");
}

// The poisoned one may be asked first, second, or share a task with honest ones.
TEST_F(FarmBuildsTest, APoisonedBinaryOfAnUntrustedBuilderIsNeverReturned) {
  Attach({"bad", "t1", false}, Poisoned);
  EXPECT_FALSE(Build({"x"}).ok());
  Attach({"good", "t2", false}, Honest);
  const auto two = Build({"x"});
  EXPECT_EQ(two.status().code(), absl::StatusCode::kFailedPrecondition) << "nobody can tell who is right";
  Attach({"third", "t3", false}, Honest);
  for (int i = 0; i < 20; ++i) {
    const std::string source = i == 0 ? "x" : absl::StrCat("unit ", i);
    const auto built = Build({source});
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_THAT(*built, ElementsAre(Honest(source)));
  }
  EXPECT_THAT(Logged(), HasSubstr("builders made other binaries than the ones that count"));
  EXPECT_THAT(Logged(), HasSubstr("token t1"));
  EXPECT_THAT(Logged(), ::testing::Not(HasSubstr("token t2")));
}

// Some poison everything and some one text in three, each in its own way; one fails.
TEST_F(FarmBuildsTest, OfThreeHundredUnitsAmongBadBuildersEachIsHonest) {
  for (const char* token : {"h1", "h2", "h3"}) Attach({token, token, false}, Honest);
  for (const char* token : {"p1", "p2"}) {
    Attach({token, token, false}, [token](const std::string& source) { return absl::StrCat(token, Poisoned(source)); });
  }
  Attach({"s1", "s1", false},
         [](const std::string& source) { return source.size() % 3 == 0 ? Poisoned(source) : Honest(source); });
  Attach({"f1", "f1", false}, Failing);
  for (int job = 0; job < 10; ++job) {
    std::vector<std::string> sources;
    for (int i = 0; i < 30; ++i) sources.push_back(absl::StrCat("unit ", job * job * job, " ", i));
    const auto built = Build(sources);
    ASSERT_TRUE(built.ok()) << built.status();
    for (size_t i = 0; i < sources.size(); ++i) ASSERT_EQ(built->at(i), Honest(sources[i]));
  }
  EXPECT_THAT(Logged(), ::testing::Not(HasSubstr("token h")));
}

TEST_F(FarmBuildsTest, UntrustedBuildersAreLeftAloneWhereATrustedOneIs) {
  Attach({"bad", "t1", false}, Poisoned);
  Attach({"bad too", "t2", false}, Poisoned);
  Attach({"good", "t3", true}, Honest);
  const auto built = Build({"x", "y"});
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_THAT(*built, ElementsAre("binary of x", "binary of y"));
  EXPECT_THAT(DoneBy("bad"), IsEmpty());
  EXPECT_THAT(DoneBy("bad too"), IsEmpty());
}

TEST_F(FarmBuildsTest, AnUntrustedBuilderThatFailsFailsNoJob) {
  Attach({"broken", "t1", false}, Failing);
  EXPECT_THAT(std::string(Build({"x"}).status().message()), HasSubstr("the text has an error"));
  Attach({"a", "t2", false}, Honest);
  Attach({"b", "t3", false}, Honest);
  for (int i = 0; i < 10; ++i) {
    const auto built = Build({absl::StrCat("unit ", i)});
    EXPECT_TRUE(built.ok()) << built.status();
  }
}

TEST_F(FarmBuildsTest, BuildersOfDifferentToolchainsCannotVouchForEachOther) {
  Attach({"a", "t1", false, "clang 14"}, Honest);
  Attach({"b", "t2", false, "clang 15"}, Honest);
  EXPECT_FALSE(Build({"x"}).ok());
}

TEST_F(FarmBuildsTest, ATrustedBuildersTasksAreCheckedAndADisputeStopsTheJob) {
  job_.check_one_build_in = 1;
  Attach({"a", "t1"}, Honest);
  ASSERT_TRUE(Build({"alone"}).ok()) << "there is nobody to check it";
  Attach({"b", "t2"}, Honest);
  ASSERT_TRUE(Build({"x"}).ok());
  EXPECT_THAT(DoneBy("a"), ::testing::Contains("x"));
  EXPECT_THAT(DoneBy("b"), ::testing::Contains("x"));
  job_.check_one_build_in = 0;
  ASSERT_TRUE(Build({"y"}).ok());
  EXPECT_EQ(DoneBy("a").size() + DoneBy("b").size(), 4u) << "y once";
}

TEST_F(FarmBuildsTest, TrustedBuildersThatDisagreeNeedAThirdOrARevocation) {
  job_.check_one_build_in = 1;
  ASSERT_TRUE(state_.store().InsertToken({"t1", "bad", std::string(64, '1'), "build", false, 1, 0, 0, ""}).ok());
  Attach({"bad", "t1"}, Poisoned);
  Attach({"good", "t2"}, Honest);
  const absl::Status disputed = Build({"x"}).status();
  EXPECT_EQ(disputed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(disputed.message()), HasSubstr("trusted builders (token t1, token t2)"));
  EXPECT_THAT(std::string(disputed.message()), HasSubstr("revoke the token"));
  ASSERT_TRUE(state_.store().RevokeToken("t1", 5).ok());
  job_.check_one_build_in = 0;
  const auto after = Build({"x"});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_THAT(*after, ElementsAre("binary of x"));
}

TEST_F(FarmBuildsTest, AMajorityOfTrustedBuildersDecides) {
  job_.check_one_build_in = 1;
  Attach({"bad", "t1"}, Poisoned);
  Attach({"good", "t2"}, Honest);
  Attach({"third", "t3"}, Honest);
  for (int i = 0; i < 10; ++i) {
    const auto built = Build({absl::StrCat("unit ", i)});
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_THAT(*built, ElementsAre(Honest(absl::StrCat("unit ", i))));
  }
  EXPECT_THAT(Logged(), ::testing::AnyOf(IsEmpty(), HasSubstr("token t1")));
}

TEST_F(FarmBuildsTest, AToolchainThatDoesNotReproduceIsNotChecked) {
  job_.check_one_build_in = 1;
  Attach({"a", "t1", true, "nvrtc", false}, Honest);
  Attach({"b", "t2", true, "nvrtc", false}, Poisoned);
  ASSERT_TRUE(Build({"x"}).ok());
  EXPECT_EQ(DoneBy("a").size() + DoneBy("b").size(), 1u);
}

TEST_F(FarmBuildsTest, AnotherToolchainBuildsAgain) {
  const std::string old = state_.artifacts().PutAll({"old binary"})->at(0).digest;
  const BuildRow row = {BuildUnitKey({"cpu", "x86-64-v3", "x"}), old, 1, "clang 13", "t0", true, true};
  ASSERT_TRUE(testing::AddRows(state_.store(), {.builds = {row}}).ok());
  EXPECT_THAT(Build({"x"}).value(), ElementsAre("old binary"));
  Attach({"a", "t1"}, Honest);
  EXPECT_THAT(Build({"x"}).value(), ElementsAre("binary of x"));
}

TEST_F(FarmBuildsTest, AWorkersIdIsItsTokens) {
  AttachedWorker worker;
  worker.id = "w", worker.name = "w", worker.token = "t1";
  ASSERT_TRUE(farm_.Register(worker).ok());
  EXPECT_TRUE(farm_.IsRegistered("w", "", "t1"));
  EXPECT_FALSE(farm_.IsRegistered("w", "", "t2"));
  worker.token = "t2";
  EXPECT_EQ(farm_.Register(worker).code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace fusion
