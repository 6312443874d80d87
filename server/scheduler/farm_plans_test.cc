#include "server/scheduler/farm_plans.h"

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/sha256.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

using FarmPlansTest = ServerFixture;

TEST_F(FarmPlansTest, PlansAreComparedByAWorkerOnceAndThenByTheDatabase) {
  absl::Mutex mutex;
  std::vector<std::string> bundles;
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    v1::MeasurePayload asked;
    EXPECT_TRUE(asked.ParseFromString(payload));
    EXPECT_EQ(asked.plans().plans_size(), 3) << "the reference and two plans";
    EXPECT_EQ(task.description(), "reference against plan 0 against plan 1");
    EXPECT_EQ(task.threads(), 1);
    absl::MutexLock lock(&mutex);
    bundles.push_back(client_->ReadBlob(asked.plans().bundle_digest()));
    return FakeWorker::Good(task, payload);
  });
  const v1::JobEvent last = client_->Watch(client_->Submit(client_->Model("plans 2")).job_id()).back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_THAT(client_->ReadBlob(last.bundle().digest()), HasSubstr("plan 1.1\nplan 1.2\n"));
  EXPECT_EQ(worker.measurements(), 1);
  {
    absl::MutexLock lock(&mutex);
    ASSERT_EQ(bundles.size(), 1u);
    EXPECT_EQ(bundles[0], "bundle of the reference and 2 plans");
    EXPECT_FALSE(client_->TryReadBlob(Sha256Hex(bundles[0])).ok()) << "the bundle of plans is not kept";
  }
  grpc::ClientContext plan_context;
  v1::PlanResponse plan;
  ASSERT_TRUE(client_->compile->Plan(&plan_context, client_->Model("plans 2"), &plan).ok());
  ASSERT_EQ(plan.account().alternatives_size(), 1) << "of the submission";
  EXPECT_EQ(plan.account().alternatives(0).plan(), "offline");
  const v1::JobEvent again = client_->Watch(client_->Submit(client_->Model("plans 2\nother weights")).job_id()).back();
  EXPECT_THAT(client_->ReadBlob(again.bundle().digest()), HasSubstr("plan 1.1\nplan 1.2\n"));
  EXPECT_EQ(worker.measurements(), 1) << "the database answers";
  EXPECT_EQ(server_->metrics().Value(Metric::kPlanComparisons, {{"source", "measured"}}), 2);
  EXPECT_EQ(server_->metrics().Value(Metric::kPlanComparisons, {{"source", "database"}}), 2);
}

TEST_F(FarmPlansTest, PlansThatCannotBeComparedFailNoJob) {
  std::atomic<bool> nonsense{true};
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    if (!nonsense) {
      v1::MeasureResults results;
      results.mutable_plans()->set_not_done("the model is too large");
      v1::TaskResult result;
      result.set_inline_(results.SerializeAsString());
      return result;
    }
    v1::TaskResult good = FakeWorker::Good(task, payload);
    v1::MeasureResults results;
    results.ParseFromString(good.inline_());
    results.mutable_plans()->mutable_plans(1)->set_ratio(2);  // outside its interval
    good.set_inline_(results.SerializeAsString());
    return good;
  });
  v1::JobEvent last = client_->Watch(client_->Submit(client_->Model("plans 1")).job_id()).back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_THAT(last.account().not_compared(), HasSubstr("does not fit its task"));
  nonsense = false;
  last = client_->Watch(client_->Submit(client_->Model("plans 2")).job_id()).back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_EQ(last.account().not_compared(), "the model is too large");
  EXPECT_THAT(client_->ReadBlob(last.bundle().digest()), HasSubstr("plan the model is too large"));
}

// A plan that is certainly slower than another one takes part in fewer rounds, but in no more than there are.
TEST_F(FarmPlansTest, APlanHasNoMoreRoundsThanThereAre) {
  std::atomic<int64_t> rounds{21};
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    v1::TaskResult result = FakeWorker::Good(task, payload);
    v1::MeasureResults results;
    results.ParseFromString(result.inline_());
    EXPECT_EQ(results.plans().rounds(), 20);
    results.mutable_plans()->mutable_plans(1)->set_rounds(rounds);
    result.set_inline_(results.SerializeAsString());
    return result;
  });
  v1::JobEvent last = client_->Watch(client_->Submit(client_->Model("plans 1")).job_id()).back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_THAT(last.account().not_compared(), HasSubstr("does not fit its task"));
  rounds = 6;
  last = client_->Watch(client_->Submit(client_->Model("plans 2")).job_id()).back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_EQ(last.account().not_compared(), "");
}

TEST_F(FarmPlansTest, WithoutAWorkerOfTheDevicePlansAreNotCompared) {
  v1::SubmitRequest request = client_->Model("plans 1");
  request.mutable_options()->set_target("cuda:sm_90");
  const v1::JobEvent last = client_->Watch(client_->Submit(request).job_id()).back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_THAT(last.account().not_compared(), HasSubstr("no worker with the device is attached (cuda"));
}

}  // namespace
}  // namespace fusion
