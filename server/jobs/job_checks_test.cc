#include "server/jobs/job_checks.h"

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/sha256.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

using JobChecksTest = ServerFixture;

TEST_F(JobChecksTest, AWorkerTimesAndVerifiesTheFinishedBundle) {
  std::vector<std::string> others;
  absl::Mutex mutex;
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    v1::MeasurePayload asked;
    if (task.kind() == v1::MEASURE && asked.ParseFromString(payload) && asked.has_model()) {
      // A worker reads both bundles while the task lasts.
      EXPECT_THAT(client_->ReadBlob(asked.model().bundle_digest()), testing::Not(HasSubstr("unfused")));
      absl::MutexLock lock(&mutex);
      others.push_back(client_->ReadBlob(asked.model().other_digest()));
    }
    return FakeWorker::Good(task, payload);
  });
  v1::SubmitRequest request = client_->Model("build 1");
  const v1::SubmitResponse plain = client_->Submit(request);
  EXPECT_FALSE(client_->Watch(plain.job_id()).back().has_checks()) << "nobody asked";

  request.set_measure(true);
  request.set_verify(true);
  const v1::SubmitResponse job = client_->Submit(request);
  EXPECT_TRUE(job.from_store()) << "the bundle is there";
  const std::vector<v1::JobEvent> events = client_->Watch(job.job_id());
  const v1::Checks& checks = events.back().checks();
  ASSERT_EQ(events.back().state(), v1::SUCCEEDED) << events.back().error().message();
  EXPECT_EQ(checks.measurement().not_done(), "");
  EXPECT_EQ(checks.measurement().ratio(), 1.5);
  EXPECT_EQ(checks.measurement().bundle().model_ns(), 500);
  EXPECT_EQ(checks.measurement().unfused().model_ns(), 2000);
  EXPECT_EQ(checks.measurement().worker(), "a");
  EXPECT_EQ(checks.verification().verdict(), v1::OUTPUT_OK);
  EXPECT_EQ(Get(job.job_id()).checks().measurement().ratio(), 1.5) << "kept with the job";
  EXPECT_THAT(FirstMessageWith(events, "unfused form"), HasSubstr("compiling the unfused form"));
  {
    absl::MutexLock lock(&mutex);
    ASSERT_EQ(others.size(), 2u);
    EXPECT_THAT(others[0], HasSubstr("unfused fast off"));
    EXPECT_THAT(others[1], HasSubstr("unfused strict off"));
    EXPECT_FALSE(client_->TryReadBlob(Sha256Hex(others[0])).ok()) << "the other forms are not kept";
  }
  // The store answers from now on, and only with what is asked for.
  const v1::SubmitResponse again = client_->Submit(request);
  EXPECT_EQ(again.state(), v1::SUCCEEDED);
  EXPECT_EQ(client_->Watch(again.job_id()).back().checks().measurement().ratio(), 1.5);
  request.set_measure(false);
  const v1::Checks verified = client_->Watch(client_->Submit(request).job_id()).back().checks();
  EXPECT_FALSE(verified.has_measurement());
  EXPECT_TRUE(verified.has_verification());
  EXPECT_EQ(worker.measurements(), 2);

  grpc::ClientContext context;
  v1::ProfileStats stats;
  ASSERT_TRUE(client_->profile->Stats(&context, {}, &stats).ok());
  ASSERT_EQ(stats.by_device_size(), 1);
  EXPECT_EQ(stats.by_device(0).plans().count(), 2);
  EXPECT_EQ(stats.by_device(0).kernels().count(), 0);
}

TEST_F(JobChecksTest, ABundleThatComputesWrongNumbersIsDeliveredWithItsVerdict) {
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    v1::TaskResult good = FakeWorker::Good(task, payload);
    v1::MeasurePayload asked;
    if (task.kind() != v1::MEASURE || !asked.ParseFromString(payload) || !asked.model().verify()) return good;
    v1::MeasureResults results;
    results.ParseFromString(good.inline_());
    results.mutable_verification()->set_verdict(v1::OUTPUT_WRONG);
    good.set_inline_(results.SerializeAsString());
    return good;
  });
  v1::SubmitRequest request = client_->Model("build 1");
  request.set_verify(true);
  const v1::JobEvent last = client_->Watch(client_->Submit(request).job_id()).back();
  EXPECT_EQ(last.state(), v1::SUCCEEDED);
  EXPECT_EQ(last.checks().verification().verdict(), v1::OUTPUT_WRONG);
  EXPECT_FALSE(client_->ReadBlob(last.bundle().digest()).empty());
}

TEST_F(JobChecksTest, ChecksThatCannotBeDoneSayWhyAndFailNoJob) {
  std::atomic<int> runs{0};
  std::atomic<bool> nonsense{true};
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    v1::MeasurePayload asked;
    if (task.kind() != v1::MEASURE || !asked.ParseFromString(payload) || !asked.has_model()) {
      return FakeWorker::Good(task, payload);
    }
    ++runs;
    if (!nonsense) return ErrorResult(grpc::INTERNAL, "signal 11");
    v1::TaskResult result;
    v1::MeasureResults wrong;  // a measurement without figures, and such whose figures cannot be
    if (runs > 1) wrong.ParseFromString(FakeWorker::Good(task, payload).inline_());
    if (runs == 1) wrong.mutable_measurement();
    if (runs == 2) wrong.mutable_measurement()->set_ratio(1.7);  // beyond its quartiles
    if (runs == 3) wrong.mutable_measurement()->mutable_bundle()->set_median_ns(800);
    result.set_inline_(wrong.SerializeAsString());
    return result;
  });
  v1::SubmitRequest request = client_->Model("build 1");
  request.set_measure(true);
  v1::JobEvent last = client_->Watch(client_->Submit(request).job_id()).back();
  EXPECT_EQ(last.state(), v1::SUCCEEDED);
  EXPECT_THAT(last.checks().measurement().not_done(), HasSubstr("does not fit its task"));
  EXPECT_EQ(runs, 3) << "every attempt";
  nonsense = false;
  request.set_measure(false);
  request.set_verify(true);
  last = client_->Watch(client_->Submit(request).job_id()).back();
  EXPECT_EQ(last.state(), v1::SUCCEEDED);
  EXPECT_THAT(last.checks().verification().not_done(), HasSubstr("signal 11"));
  EXPECT_EQ(last.checks().verification().verdict(), v1::OUTPUT_NOT_COMPARED) << "a crash is a finding";
}

TEST_F(JobChecksTest, WithoutAWorkerOfTheDeviceTheChecksSaySo) {
  v1::SubmitRequest request = client_->Model("ok");
  request.mutable_options()->set_target("cuda:sm_90");
  request.set_measure(true);
  request.set_verify(true);
  for (const bool from_store : {false, true}) {
    const v1::SubmitResponse job = client_->Submit(request);
    EXPECT_EQ(job.from_store(), from_store);
    const v1::JobEvent last = client_->Watch(job.job_id()).back();
    ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
    EXPECT_THAT(last.checks().measurement().not_done(), HasSubstr("no worker with the device is attached (cuda"));
    EXPECT_THAT(last.checks().verification().not_done(), HasSubstr("no worker with the device is attached (cuda"));
  }
}

TEST_F(JobChecksTest, AJobThatIsCheckedCanBeCancelledAndTheBundleStays) {
  absl::Notification begun, cancelled;
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    if (task.kind() == v1::MEASURE && !begun.HasBeenNotified()) {
      begun.Notify();
      cancelled.WaitForNotification();
    }
    return FakeWorker::Good(task, payload);
  });
  absl::Cleanup release = [&] {
    if (!cancelled.HasBeenNotified()) cancelled.Notify();
  };
  v1::SubmitRequest request = client_->Model("build 1");
  request.set_measure(true);
  const v1::SubmitResponse job = client_->Submit(request);
  begun.WaitForNotification();
  grpc::ClientContext context;
  v1::CancelJobRequest cancel;
  v1::Job row;
  cancel.set_job_id(job.job_id());
  EXPECT_TRUE(client_->compile->Cancel(&context, cancel, &row).ok());
  EXPECT_EQ(client_->Watch(job.job_id()).back().state(), v1::CANCELLED);
  cancelled.Notify();
  const v1::SubmitResponse again = client_->Submit(request);
  EXPECT_TRUE(again.from_store()) << "it was compiled";
  EXPECT_EQ(client_->Watch(again.job_id()).back().checks().measurement().ratio(), 1.5);
  EXPECT_EQ(worker.builds(), 1);
}

}  // namespace
}  // namespace fusion
