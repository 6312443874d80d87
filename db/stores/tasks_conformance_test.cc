// Tests what every Store must do with the tasks of workers, what they build, and the workers.
#include "db/stores/store_conformance_test.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;

TEST_P(StoreConformance, ATaskIsQueuedClaimedAndEndsUnderItsFence) {
  TaskRow a;
  a.id = "t-a", a.key = "ka", a.kind = TaskType::kMeasure, a.requirement = "measure:cpu:f", a.payload_digest = "old";
  TaskRow b = a;
  b.id = "t-b", b.key = "kb";
  EXPECT_EQ(store_->LastFence().value(), 0);
  EXPECT_THAT(Call({QueueTask{a}, QueueTask{b}, ClaimTask{"t-b", "w", absl::Seconds(30)}}), ElementsAre(0, 0, 1));
  EXPECT_EQ(store_->LastFence().value(), 1);
  EXPECT_EQ(store_->UnfinishedTasks()->size(), 2u);
  TaskRow found = store_->FindTask("kb").value().value();
  EXPECT_EQ(found.state, TaskPhase::kLeased);
  EXPECT_EQ(found.worker, "w");
  EXPECT_EQ(found.attempts, 1);
  EXPECT_EQ(found.requirement, "measure:cpu:f");
  EXPECT_FALSE(store_->FindTask("kc")->has_value());

  b.payload_digest = a.payload_digest = "new";
  EXPECT_THAT(Call({QueueTask{b}, QueueTask{a}}), ElementsAre(kRefused, 0)) << "somebody has the old payload";
  EXPECT_EQ(store_->FindTask("ka").value()->payload_digest, "new");
  EXPECT_THAT(Call({RenewTask{{"t-b", "v", 1}, absl::Seconds(9)}, FailTask{{"t-b", "w", 2}},
                    CompleteTask{{"t-b", "", 1}, "w", {}}, ClaimTask{"t-b", "v", absl::Seconds(9)}}),
              ElementsAre(kRefused, kRefused, kRefused, kRefused));
  EXPECT_THAT(
      Call({RenewTask{{"t-b", "w", 1}, absl::Seconds(9)}, FailTask{{"t-b", "w", 1}, TaskPhase::kQueued, true, "why\n"},
            ClaimTask{"t-b", "v", absl::Seconds(9)}, FailTask{{"t-b", "v", 2}, TaskPhase::kQueued, false, "more\n"}}),
      ElementsAre(0, 0, 2, 0));
  found = store_->FindTask("kb").value().value();
  EXPECT_EQ(found.state, TaskPhase::kQueued);
  EXPECT_EQ(found.attempts, 1);
  EXPECT_EQ(found.evidence, "why\nmore\n");
  EXPECT_THAT(Call({CompleteTask{{"t-b", "", 2}, "w", {}}, FailTask{{"t-a", "", 0}, TaskPhase::kCancelled}}),
              ElementsAre(0, 0));
  EXPECT_EQ(store_->FindTask("kb").value()->worker, "w");
  EXPECT_TRUE(store_->UnfinishedTasks()->empty());

  b.id = "t-b+";
  EXPECT_THAT(Call({QueueTask{b}}), ElementsAre(0)) << "the task of its key is final";
  EXPECT_EQ(store_->FindTask("kb").value()->id, "t-b+");
  EXPECT_EQ(store_->FindTask("kb").value()->fence, 0);
  EXPECT_EQ(store_->LastFence().value(), 2) << "the row with the largest fence is gone";
  b.id = "t-b++";
  EXPECT_THAT(Call({QueueTask{b}}), ElementsAre(kRefused)) << "it is in flight under another id";
}

TEST_P(StoreConformance, CallsAboutTasksThatMakeNoSenseDoNothing) {
  TaskRow task;
  task.id = task.key = "t";
  for (const TaskCall& call : std::vector<TaskCall>{
           ClaimTask{"t", "", absl::Seconds(1)}, ClaimTask{"t", "w", kLongestLease + absl::Seconds(1)},
           RenewTask{{"t", "w", 1}, kLongestLease + absl::Seconds(1)}, FailTask{{"t", "w", 1}, TaskPhase::kDone},
           FailTask{{"t", "", 0}, TaskPhase::kQueued, false}}) {
    EXPECT_EQ(store_->CallTasks({QueueTask{task}, call}, 1).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(store_->FindTask("t")->has_value());
}

TEST_P(StoreConformance, ATaskIsDoneExactlyWhenItsRowsAreThere) {
  TaskRow task;
  task.id = task.key = "t";
  ASSERT_THAT(Call({QueueTask{task}, ClaimTask{"t", "w", absl::Seconds(30)}}), ElementsAre(0, 1));
  MeasurementRow good;
  good.question_key = "q", good.measurement_key = "m", good.samples = 1, good.samples_ns = {5}, good.median_ns = 5;
  good.task = "t", good.fence = 1;
  MeasurementRow bad = good;
  bad.question_key = "bad", bad.item = 1, bad.samples = 0;  // the schema refuses it
  const TaskClaim claim{"t", "w", 1};
  EXPECT_FALSE(store_->CallTasks({CompleteTask{claim, "w", {.measurements = {good, bad}}}}, 1).ok());
  EXPECT_EQ(store_->FindTask("t").value()->state, TaskPhase::kLeased);
  EXPECT_THAT(Call({CompleteTask{{"t", "w", 7}, "w", {.measurements = {good}}}}), ElementsAre(kRefused));
  EXPECT_FALSE(store_->MedianLatencies({"q"})->at(0).has_value()) << "rows of a claim that does not hold";
  EXPECT_THAT(Call({CompleteTask{claim, "w", {.measurements = {good}}}}), ElementsAre(0));
  EXPECT_EQ(store_->FindTask("t").value()->state, TaskPhase::kDone);
  EXPECT_EQ(store_->MedianLatencies({"q"})->at(0), 5);
}

TEST_P(StoreConformance, Builds) {
  const std::string a(64, 'a'), b(64, 'b');
  ASSERT_TRUE(AddRows({.builds = {{a, "bin1", 1}}}).ok());
  ASSERT_TRUE(AddRows({.builds = {{a, "bin2", 2}}}).ok());
  auto found = store_->FindBuilds({b, a}).value();
  EXPECT_TRUE(found[0].empty());
  ASSERT_EQ(found[1].size(), 1u) << "of one builder";
  EXPECT_EQ(found[1][0].binary_digest, "bin2");
  EXPECT_EQ(found[1][0].created_ms, 2);
}

TEST_P(StoreConformance, BuildsAreToldApartByToolchainAndBuilderAndGoWithItsToken) {
  const std::string a(64, 'a'), b(64, 'b');
  for (const char* id : {"t1", "t2"}) {
    ASSERT_TRUE(store_->InsertToken({id, id, std::string(64, *(id + 1)), "untrusted-build", false, 10, 0, 0, ""}).ok());
  }
  const BuildRow one{a, "bin1", 5, "clang", "t1", false, true};
  ASSERT_TRUE(AddRows({.builds = {one,
                                  {a, "bin2", 6, "clang", "t2", false, true},
                                  {a, "bin3", 7, "old clang", "t1", false, false},
                                  {b, "bin4", 8, "clang", ""}}})
                  .ok());
  auto found = store_->FindBuilds({a, b}).value();
  ASSERT_EQ(found[0].size(), 3u);
  const BuildRow& first = found[0][0];
  EXPECT_EQ(first.key, a);
  EXPECT_EQ(first.binary_digest, "bin1");
  EXPECT_EQ(first.created_ms, 5);
  EXPECT_EQ(first.toolchain, "clang");
  EXPECT_EQ(first.builder, "t1");
  EXPECT_FALSE(first.trusted);
  EXPECT_TRUE(first.reproduces);
  EXPECT_FALSE(found[0][2].reproduces);
  EXPECT_TRUE(found[1][0].trusted);

  ASSERT_TRUE(store_->RevokeToken("t1", 35).ok());
  ASSERT_TRUE(store_->RevokeToken("", 35).ok()) << "the socket's owner has no token";
  found = store_->FindBuilds({a, b}).value();
  ASSERT_EQ(found[0].size(), 1u);
  EXPECT_EQ(found[0][0].builder, "t2");
  EXPECT_EQ(found[1].size(), 1u);
  // A result that was under way when the token was revoked.
  ASSERT_TRUE(AddRows({.builds = {one}}).ok());
  EXPECT_EQ(store_->FindBuilds({a})->at(0).size(), 1u);
  const auto expired = store_->ExpireRows({0, 0, 7}, 100);
  ASSERT_TRUE(expired.ok()) << expired.status();
  EXPECT_EQ(expired->builds, 1);
  EXPECT_EQ(store_->FindBuilds({b})->at(0).size(), 1u) << "it is younger";
}

TEST_P(StoreConformance, WorkersKeepTheirDeviceModel) {
  EXPECT_FALSE(store_->LatestWorker("cpu")->has_value());
  ASSERT_TRUE(store_->PutWorker({"w1", "host", "cpu", "f1", "{}", 10}).ok());
  ASSERT_TRUE(store_->PutWorker({"w2", "host", "cpu", "f2", "{}", 20}).ok());
  ASSERT_TRUE(store_->PutWorker({"w1", "host", "cpu", "f3", "{}", 30}).ok());
  EXPECT_EQ(store_->LatestWorker("cpu").value()->fingerprint, "f3");
  EXPECT_EQ(store_->FindWorker("w2").value()->fingerprint, "f2");
  EXPECT_FALSE(store_->FindWorker("w3")->has_value());
}

TEST_P(StoreConformance, DrainedWorkersAreKeptByName) {
  ASSERT_TRUE(store_->PutDrainedWorker({"b", "why", "me", 7}).ok());
  ASSERT_TRUE(store_->PutDrainedWorker({"a", "", "me", 8}).ok());
  ASSERT_TRUE(store_->PutDrainedWorker({"b", "another reason", "you", 9, 10, 20}).ok());
  const std::vector<DrainedWorkerRow> rows = store_->DrainedWorkers().value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_EQ(rows[1].reason + rows[1].by, "another reasonyou");
  EXPECT_EQ(rows[1].since_ms, 9);
  EXPECT_FALSE(rows[1].HoldsAt(9));
  EXPECT_TRUE(rows[1].HoldsAt(10) && rows[1].HoldsAt(19));
  EXPECT_FALSE(rows[1].HoldsAt(20));
  EXPECT_TRUE(rows[0].HoldsAt(1) && rows[0].HoldsAt(int64_t{1} << 50)) << "until it is released";
  ASSERT_TRUE(store_->RemoveDrainedWorker("b").ok());
  EXPECT_EQ(store_->DrainedWorkers()->size(), 1u);
}

}  // namespace
}  // namespace fusion
