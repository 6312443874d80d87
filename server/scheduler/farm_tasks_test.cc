#include "server/scheduler/farm_tasks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

using FarmTasksTest = ServerFixture;

TEST_F(FarmTasksTest, QuestionsOfAComparisonSetAreOnePairedMeasurement) {
  FakeWorker worker(address_, "a", [](const v1::Task& task, const std::string& payload) {
    v1::MeasurePayload asked;
    EXPECT_TRUE(asked.ParseFromString(payload));
    EXPECT_EQ(asked.items_size(), 3);
    EXPECT_EQ(task.description(), "block 0 against block 1 against block 2");
    return FakeWorker::Good(task, payload);
  });
  const v1::JobEvent last = client_->Watch(client_->Submit(client_->Model("compare 3")).job_id()).back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_EQ(last.account().measured(), 3);
  EXPECT_EQ(worker.measurements(), 1);
  const v1::JobEvent again =
      client_->Watch(client_->Submit(client_->Model("compare 3\nother weights")).job_id()).back();
  EXPECT_EQ(again.account().from_database(), 3);
  EXPECT_EQ(worker.measurements(), 1);
}

TEST_F(FarmTasksTest, AMeasurementThatCrashesIsEstimatedAndABuildErrorFailsTheJob) {
  FakeWorker worker(address_, "a", [](const v1::Task& task, const std::string& payload) {
    if (task.kind() == v1::MEASURE && task.description() == "block 1") {
      return ErrorResult(grpc::INTERNAL, "signal 11");
    }
    if (payload.find("k_1;") != std::string::npos) return ErrorResult(grpc::INTERNAL, "error: expected ';'");
    return FakeWorker::Good(task, payload);
  });
  std::vector<v1::JobEvent> events = client_->Watch(client_->Submit(client_->Model("ask 3")).job_id());
  ASSERT_EQ(events.back().state(), v1::SUCCEEDED);
  EXPECT_EQ(events.back().account().measured(), 2);
  EXPECT_EQ(events.back().account().from_model(), 1);
  EXPECT_EQ(worker.measurements(), 5) << "three attempts at the bad one";
  EXPECT_THAT(FirstMessageWith(events, "not measured"), HasSubstr("signal 11"));

  const v1::JobEvent last = client_->Watch(client_->Submit(client_->Model("build 2")).job_id()).back();
  EXPECT_EQ(last.error().code(), grpc::INTERNAL);
  EXPECT_THAT(last.error().message(), HasSubstr("expected ';'"));
  EXPECT_EQ(worker.builds(), 1);
}

TEST_F(FarmTasksTest, APlanOfEstimatesIsMadeAgainOnceItCanBeMeasured) {
  std::atomic<bool> broken{true};
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    return broken && task.kind() == v1::MEASURE ? ErrorResult(grpc::INTERNAL, "no clock")
                                                : FakeWorker::Good(task, payload);
  });
  const v1::SubmitRequest request = client_->Model("ask 2");
  EXPECT_EQ(client_->Watch(client_->Submit(request).job_id()).back().account().from_model(), 2);
  broken = false;
  const v1::SubmitResponse again = client_->Submit(request);
  EXPECT_FALSE(again.from_store());
  EXPECT_EQ(client_->Watch(again.job_id()).back().account().measured(), 2);
  EXPECT_TRUE(client_->Submit(request).from_store());
}

TEST_F(FarmTasksTest, UntrustedResultsAreRejected) {
  std::atomic<int> calls{0};
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    if (++calls > 2) return FakeWorker::Good(task, payload);
    v1::TaskResult result;
    v1::BuildResult empty;
    if (calls == 1) {
      result.set_inline_(empty.SerializeAsString());  // without binaries
    } else {
      result.set_digest(std::string(64, 'a'));  // never written
    }
    return result;
  });
  EXPECT_EQ(client_->Watch(client_->Submit(client_->Model("build 1")).job_id()).back().state(), v1::SUCCEEDED);
  EXPECT_EQ(worker.builds(), 3);
}

}  // namespace
}  // namespace fusion
