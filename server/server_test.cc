// Tests the services over a unix socket, with a compiler and workers whose behaviour the tests decide.
#include "server/server.h"

#include <grpcpp/generic/generic_stub.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/sha256.h"
#include "server/testing/fake_compile.h"
#include "server/testing/test_client.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class ServerTest : public testing::Test {
 protected:
  ServerTest()
      : folder_(absl::StrCat("/tmp/fusion-server-test-", getpid(), "-", counter_++)),
        address_(absl::StrCat("unix:", folder_, "/s")) {
    std::filesystem::remove_all(folder_);
    StartServer();
    client_ = std::make_unique<TestClient>(address_);
  }
  ~ServerTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  absl::StatusOr<std::unique_ptr<Server>> TryStart(std::vector<std::string> listen) {
    ServerOptions options;
    options.state_folder = folder_;
    options.listen = std::move(listen);
    options.first_worker_grace = absl::Milliseconds(200);
    // No lease may end while a test runs, however busy the machine is.
    options.scheduler.lease = options.scheduler.heartbeat = absl::Hours(1);
    options.free_bytes = [this] { return free_bytes_.load(); };
    options.log = [this](const LogLine& line) {
      absl::MutexLock lock(&log_mutex_);
      log_.push_back(line);
    };
    return Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule});
  }
  void StartServer() {
    auto server = TryStart({address_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  v1::Job Get(const std::string& id) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    v1::Job job;
    request.set_job_id(id);
    EXPECT_TRUE(client_->compile->Get(&context, request, &job).ok());
    return job;
  }
  // Returns the messages of the log's lines about a job.
  std::vector<std::string> LogOf(const std::string& job_id) {
    std::vector<std::string> messages;
    absl::MutexLock lock(&log_mutex_);
    for (const LogLine& line : log_) {
      for (const LogField& field : line.fields) {
        if (field.key == "job" && field.value == job_id) messages.push_back(line.message);
      }
    }
    return messages;
  }
  std::string FirstMessageWith(const std::vector<v1::JobEvent>& events, const std::string& words) {
    for (const v1::JobEvent& event : events) {
      if (event.message().find(words) != std::string::npos) return event.message();
    }
    return "";
  }

  // The answer of grpc.health.v1.Health/Check: 1 is SERVING, 2 is NOT_SERVING.
  int Health() {
    grpc::GenericStub stub(client_->channel);
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::CompletionQueue queue;
    const grpc::Slice none("", 0);
    const auto call =
        stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&none, 1), &queue);
    grpc::Status status;
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    grpc::Slice bytes;
    if (!status.ok() || !response.DumpToSingleSlice(&bytes).ok() || bytes.size() != 2) return -1;
    return bytes.begin()[1];
  }

  static inline int counter_ = 0;
  std::atomic<int64_t> free_bytes_{int64_t{1} << 40};
  absl::Mutex log_mutex_;
  std::vector<LogLine> log_ ABSL_GUARDED_BY(log_mutex_);
  const std::string folder_, address_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<TestClient> client_;
};

TEST_F(ServerTest, CompilesMeasuresBuildsAndRemembers) {
  FakeWorker worker(address_, "a");
  v1::SubmitResponse first = client_->Submit(client_->Model("ask 3 build 10"));
  std::vector<v1::JobEvent> events = client_->Watch(first.job_id());
  ASSERT_FALSE(events.empty());
  const v1::JobEvent& last = events.back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_EQ(last.account().measured(), 3);
  EXPECT_EQ(worker.measurements(), 3);
  EXPECT_EQ(worker.builds(), 2) << "ten units in groups of eight";
  const std::string bundle = client_->ReadBlob(last.bundle().digest());
  EXPECT_EQ(Sha256Hex(bundle), last.bundle().digest());
  EXPECT_THAT(bundle, HasSubstr("measured 1000\n"));
  EXPECT_THAT(bundle, HasSubstr("binary bin(int k_9;)\n"));
  EXPECT_EQ(client_->ReadBlob(last.bundle().digest(), 6), bundle.substr(6)) << "resume at an offset";
  EXPECT_EQ(Get(first.job_id()).bundle().digest(), last.bundle().digest());

  v1::SubmitResponse again = client_->Submit(client_->Model("ask 3 build 10"));
  EXPECT_TRUE(again.from_store());
  EXPECT_EQ(again.state(), v1::SUCCEEDED);
  EXPECT_EQ(client_->Watch(again.job_id()).back().bundle().digest(), last.bundle().digest());
  EXPECT_EQ(worker.measurements(), 3) << "the store answers";
  EXPECT_EQ(worker.builds(), 2);

  // Another model with the same fusion blocks asks no worker.
  v1::SubmitResponse other = client_->Submit(client_->Model("ask 3 build 10\nother weights"));
  EXPECT_FALSE(other.from_store());
  EXPECT_EQ(client_->Watch(other.job_id()).back().account().from_database(), 3);
  EXPECT_EQ(worker.measurements(), 3);
  EXPECT_EQ(worker.builds(), 2);

  grpc::ClientContext context;
  v1::ProfileStats stats;
  ASSERT_TRUE(client_->profile->Stats(&context, {}, &stats).ok());
  EXPECT_EQ(stats.measurements(), 3);
  EXPECT_EQ(stats.from_database(), 3);
  const std::string metrics = server_->metrics().Text();
  EXPECT_GT(server_->metrics().Value(Metric::kDiskFreeBytes), 0);
  EXPECT_THAT(metrics, HasSubstr("fusion_profile_requests_total{source=\"measured\"} 3"));
  EXPECT_THAT(metrics, HasSubstr("fusion_rpc_requests_total{code=\"OK\",method=\"/fusion.v1.Compile/Submit\"} 3"));
}

TEST_F(ServerTest, AWorkerTimesAndVerifiesTheFinishedBundle) {
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

TEST_F(ServerTest, ABundleThatComputesWrongNumbersIsDeliveredWithItsVerdict) {
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

TEST_F(ServerTest, ChecksThatCannotBeDoneSayWhyAndFailNoJob) {
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
    v1::MeasureResults empty;  // a measurement without figures
    empty.mutable_measurement();
    result.set_inline_(empty.SerializeAsString());
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

TEST_F(ServerTest, WithoutAWorkerOfTheDeviceTheChecksSaySo) {
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

TEST_F(ServerTest, AJobThatIsCheckedCanBeCancelledAndTheBundleStays) {
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

TEST_F(ServerTest, TheJobsIdReachesTheWorkerAndIsOnEveryLineOfTheLog) {
  absl::Mutex mutex;
  std::vector<std::string> jobs;
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    absl::MutexLock lock(&mutex);
    jobs.push_back(task.job_id());
    return FakeWorker::Good(task, payload);
  });
  const std::string id = client_->Submit(client_->Model("ask 1 build 1")).job_id();
  ASSERT_EQ(client_->Watch(id).back().state(), v1::SUCCEEDED);
  {
    absl::MutexLock lock(&mutex);
    EXPECT_THAT(jobs, testing::ElementsAre(id, id));
  }
  server_.reset();  // every thread has written its lines
  EXPECT_THAT(LogOf(id), testing::IsSupersetOf({"submitted", "started", "task leased", "task done", "succeeded"}));
}

TEST_F(ServerTest, QuestionsOfAComparisonSetAreOnePairedMeasurement) {
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

TEST_F(ServerTest, PlansAreComparedByAWorkerOnceAndThenByTheDatabase) {
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

TEST_F(ServerTest, PlansThatCannotBeComparedFailNoJob) {
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

TEST_F(ServerTest, WithoutAWorkerOfTheDevicePlansAreNotCompared) {
  v1::SubmitRequest request = client_->Model("plans 1");
  request.mutable_options()->set_target("cuda:sm_90");
  const v1::JobEvent last = client_->Watch(client_->Submit(request).job_id()).back();
  ASSERT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_THAT(last.account().not_compared(), HasSubstr("no worker with the device is attached (cuda"));
}

TEST_F(ServerTest, WhoJoinsAJobCancelsForHimselfAndTheLastOneEndsIt) {
  FakeWorker worker(address_, "a");
  v1::SubmitRequest request = client_->Model("slow");
  const v1::SubmitResponse first = client_->Submit(request);
  request.set_model_name("another name");
  const v1::SubmitResponse second = client_->Submit(request);
  EXPECT_TRUE(second.joined());
  EXPECT_EQ(second.key(), first.key());
  EXPECT_NE(second.job_id(), first.job_id());
  client_->AwaitStarted(first.job_id());
  client_->AwaitStarted(second.job_id());
  const auto cancel = [&](const std::string& id) {
    grpc::ClientContext context;
    v1::CancelJobRequest cancelled;
    v1::Job job;
    cancelled.set_job_id(id);
    EXPECT_TRUE(client_->compile->Cancel(&context, cancelled, &job).ok());
    EXPECT_EQ(job.job_id(), id);
    EXPECT_EQ(job.state(), v1::CANCELLED);
  };
  std::vector<v1::JobEvent> of_first;
  std::thread watcher([&] { of_first = client_->Watch(first.job_id()); });
  cancel(first.job_id());
  watcher.join();
  EXPECT_EQ(of_first.back().state(), v1::CANCELLED);
  EXPECT_EQ(of_first.back().error().code(), grpc::CANCELLED);
  EXPECT_EQ(client_->Watch(first.job_id(), of_first[0].seq()).back().seq(), of_first.back().seq()) << "the same again";
  EXPECT_EQ(Get(first.job_id()).last_seq(), of_first.back().seq());
  EXPECT_EQ(Get(second.job_id()).state(), v1::RUNNING) << "it is not his to end";
  EXPECT_EQ(Get(second.job_id()).model_name(), "another name");
  const v1::SubmitResponse third = client_->Submit(request);
  EXPECT_TRUE(third.joined());
  cancel(second.job_id());
  std::thread last_watcher([&] { EXPECT_EQ(client_->Watch(third.job_id()).back().state(), v1::CANCELLED); });
  cancel(third.job_id());
  last_watcher.join();
  EXPECT_FALSE(client_->Submit(request).joined()) << "a job that was cancelled is not in flight";
}

TEST_F(ServerTest, ErrorsOfTheCompilerKeepCodeAndWords) {
  FakeWorker worker(address_, "a");
  v1::SubmitResponse job = client_->Submit(client_->Model("fail Conv 'a': group=3 does not divide C=64"));
  const v1::JobEvent last = client_->Watch(job.job_id()).back();
  EXPECT_EQ(last.state(), v1::FAILED);
  EXPECT_EQ(last.error().code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(last.error().message(), "Conv 'a': group=3 does not divide C=64");
  EXPECT_EQ(Get(job.job_id()).error().code(), grpc::INVALID_ARGUMENT);
}

TEST_F(ServerTest, BadSubmissionsAreRefusedWithReasons) {
  FakeWorker worker(address_, "a");
  v1::SubmitRequest good = client_->Model("ok");
  EXPECT_EQ(client_->TrySubmit({}).error_code(), grpc::INVALID_ARGUMENT);

  v1::SubmitRequest request = good;
  request.mutable_files(0)->set_chunk_digests(0, std::string(64, 'e'));
  grpc::Status status = client_->TrySubmit(request);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr(std::string(64, 'e')));

  request = good;
  request.mutable_files(0)->set_chunk_digests(0, "../../etc/passwd");
  EXPECT_EQ(client_->TrySubmit(request).error_code(), grpc::INVALID_ARGUMENT);

  request = good;
  *request.add_files() = good.files(0);
  request.mutable_files(1)->set_path("../secret");
  status = client_->TrySubmit(request);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("../secret"));

  request = good;
  request.mutable_files(0)->set_size_bytes(1);
  v1::SubmitResponse lying = client_->Submit(request);
  EXPECT_EQ(client_->Watch(lying.job_id()).back().error().code(), grpc::INVALID_ARGUMENT);

  request = good;
  request.mutable_options()->set_target("tpu");
  status = client_->TrySubmit(request);
  EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("no worker for target 'tpu'; kinds attached: cpu"));

  request = good;
  request.mutable_options()->set_planner("magic");
  EXPECT_EQ(client_->TrySubmit(request).error_code(), grpc::INVALID_ARGUMENT);

  request = good;
  request.mutable_options()->set_size("tiny");
  status = client_->TrySubmit(request);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("size 'tiny' is unknown; use one of any, small"));

  request = good;
  request.mutable_options()->add_disabled_rules("factr");
  status = client_->TrySubmit(request);
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("factr"));
  EXPECT_EQ(client_->Watch(client_->Submit(good).job_id()).back().state(), v1::SUCCEEDED) << "the server lives";
}

TEST_F(ServerTest, DisabledRulesArePartOfTheKey) {
  FakeWorker worker(address_, "anna");
  const v1::SubmitRequest all = client_->Model("build 1");
  v1::SubmitRequest one = all, two = all, swapped = all;
  one.mutable_options()->add_disabled_rules("factor");
  for (const char* id : {"factor", "other"}) two.mutable_options()->add_disabled_rules(id);
  for (const char* id : {"other", "factor", "other"}) swapped.mutable_options()->add_disabled_rules(id);
  client_->Watch(client_->Submit(all).job_id());  // attaches the device, which is part of the key from now on
  const std::string key = client_->Submit(two).key();
  EXPECT_NE(client_->Submit(all).key(), client_->Submit(one).key());
  EXPECT_NE(client_->Submit(one).key(), key);
  EXPECT_EQ(client_->Submit(swapped).key(), key);
}

TEST_F(ServerTest, TheSizeIsPartOfTheKey) {
  FakeWorker worker(address_, "anna");
  const v1::SubmitRequest unsaid = client_->Model("build 1");
  v1::SubmitRequest any = unsaid, small = unsaid;
  any.mutable_options()->set_size("any");
  small.mutable_options()->set_size("small");
  client_->Watch(client_->Submit(unsaid).job_id());
  EXPECT_EQ(client_->Submit(unsaid).key(), client_->Submit(any).key());
  EXPECT_NE(client_->Submit(unsaid).key(), client_->Submit(small).key());
}

TEST_F(ServerTest, WaitsForAWorkerAndSaysSo) {
  v1::SubmitResponse job = client_->Submit(client_->Model("build 1"));
  client_->AwaitStarted(job.job_id());
  FakeWorker worker(address_, "late");
  std::vector<v1::JobEvent> events = client_->Watch(job.job_id());
  EXPECT_EQ(events.back().state(), v1::SUCCEEDED);
  EXPECT_EQ(FirstMessageWith(events, "no worker"), "no worker for cpu; kinds attached: none");
}

TEST_F(ServerTest, GivesUpWaitingAfterTheClientsTimeout) {
  v1::SubmitRequest request = client_->Model("build 1");
  request.set_queue_timeout_ms(150);
  const v1::JobEvent last = client_->Watch(client_->Submit(request).job_id()).back();
  EXPECT_EQ(last.error().code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(last.error().message(), HasSubstr("no worker for cpu"));
}

TEST_F(ServerTest, AMeasurementThatCrashesIsEstimatedAndABuildErrorFailsTheJob) {
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

TEST_F(ServerTest, APlanOfEstimatesIsMadeAgainOnceItCanBeMeasured) {
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

TEST_F(ServerTest, UntrustedResultsAreRejected) {
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

TEST_F(ServerTest, WrongFenceChangesNothing) {
  v1::SubmitResponse job = client_->Submit(client_->Model("build 1"));
  v1::SynchronizeRequest request;
  request.set_worker_id("w");
  *request.mutable_info() = CpuWorkerInfo("w");
  request.set_max_wait_ms(5000);
  auto synchronize = [&] {
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    grpc::Status status = client_->worker->Synchronize(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  v1::SynchronizeResponse response = synchronize();
  while (!response.has_task()) response = synchronize();  // the compilation asks when its thread gets to it
  const v1::Task task = response.task();
  v1::CurrentTask* current = request.mutable_current();
  current->set_task_id(task.task_id());
  current->set_fence(task.fence() + 1);
  *current->mutable_result() = FakeWorker::Good(task, client_->ReadBlob(task.payload_digest()));
  response = synchronize();
  EXPECT_EQ(response.task().fence(), task.fence()) << "still to be done";
  EXPECT_EQ(Get(job.job_id()).state(), v1::RUNNING);
  current->clear_result();
  response = synchronize();
  EXPECT_FALSE(response.has_task()) << "a heartbeat of a lease that is not ours is told to stop";
  current->set_fence(task.fence());
  *current->mutable_result() = FakeWorker::Good(task, client_->ReadBlob(task.payload_digest()));
  request.set_max_wait_ms(0);
  synchronize();
  EXPECT_EQ(client_->Watch(job.job_id()).back().state(), v1::SUCCEEDED);
}

TEST_F(ServerTest, UnfinishedJobsContinueAfterARestartAndWatchersReattach) {
  absl::Notification begun, watched, restarted;
  FakeWorker worker(address_, "a", [&](const v1::Task& task, const std::string& payload) {
    if (task.kind() == v1::MEASURE) {
      begun.Notify();
      restarted.WaitForNotification();
    }
    return FakeWorker::Good(task, payload);
  });
  absl::Cleanup release_worker = [&] {
    if (!restarted.HasBeenNotified()) restarted.Notify();
  };
  v1::SubmitResponse job = client_->Submit(client_->Model("ask 1 build 1"));
  client_->AwaitStarted(job.job_id());
  std::thread stopper([&] {
    begun.WaitForNotification();
    watched.WaitForNotification();  // gRPC cancels a call that comes while the server shuts down
    server_->Shutdown(absl::Minutes(1));
  });
  grpc::Status status;
  auto release_stopper = [&] {
    if (!watched.HasBeenNotified()) watched.Notify();
  };
  std::vector<v1::JobEvent> events =
      client_->Watch(job.job_id(), 0, &status, [&](const v1::JobEvent&) { release_stopper(); });
  release_stopper();
  stopper.join();
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE) << status.error_message();
  ASSERT_FALSE(events.empty());
  server_.reset();
  StartServer();
  restarted.Notify();
  while (true) {
    std::vector<v1::JobEvent> more = client_->Watch(job.job_id(), events.back().seq(), &status);
    events.insert(events.end(), more.begin(), more.end());
    if (status.ok()) break;
  }
  EXPECT_EQ(events.back().state(), v1::SUCCEEDED) << status.error_message();
  EXPECT_THAT(FirstMessageWith(events, "restarted"), HasSubstr("starts again"));
  EXPECT_EQ(worker.measurements(), 1) << "the result of the old lease was taken";
}

TEST_F(ServerTest, LeasesOfTheLocalWorkerEndWithTheServer) {
  v1::SubmitResponse job = client_->Submit(client_->Model("build 1"));
  v1::SynchronizeRequest request;
  request.set_worker_id("dies with the server");
  *request.mutable_info() = CpuWorkerInfo("local");
  request.set_max_wait_ms(5000);
  v1::SynchronizeResponse response;
  while (!response.has_task()) {
    grpc::ClientContext context;
    ASSERT_TRUE(client_->worker->Synchronize(&context, request, &response).ok());
  }
  server_.reset();
  StartServer();  // the dead worker's lease would last an hour
  client_ = std::make_unique<TestClient>(address_);
  FakeWorker worker(address_, "local");
  EXPECT_EQ(client_->Watch(job.job_id()).back().state(), v1::SUCCEEDED);
}

TEST_F(ServerTest, BlobsAreCheckedAndFound) {
  EXPECT_EQ(client_->WriteBlob(Sha256Hex("right"), "wrong").error_code(), grpc::DATA_LOSS);
  EXPECT_EQ(client_->WriteBlob("short", "x").error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_TRUE(client_->WriteBlob(Sha256Hex("right"), "right").ok());
  EXPECT_TRUE(client_->WriteBlob(Sha256Hex("right"), "right").ok()) << "again is harmless";
  EXPECT_TRUE(client_->WriteBlob(Sha256Hex(""), "").ok());
  grpc::ClientContext context;
  v1::FindMissingRequest request;
  v1::FindMissingResponse response;
  request.add_digests(Sha256Hex("right"));
  request.add_digests(Sha256Hex("wrong"));
  ASSERT_TRUE(client_->blobs->FindMissing(&context, request, &response).ok());
  EXPECT_THAT(response.missing(), testing::ElementsAre(Sha256Hex("wrong")));
  EXPECT_EQ(client_->ReadBlob(Sha256Hex("right")), "right");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/blobs/tmp")) << "nothing half-written stays";
}

TEST_F(ServerTest, BlobsBeforeAWrongOneStay) {
  constexpr int kBlobs = 100;  // more than wait for the disk at once
  grpc::ClientContext write_context, find_context;
  v1::WriteResponse written;
  auto writer = client_->blobs->Write(&write_context, &written);
  v1::FindMissingRequest request;
  for (int b = 0; b <= kBlobs; ++b) {
    const std::string bytes = absl::StrCat("blob ", b);
    v1::WriteRequest message;
    message.set_digest(Sha256Hex(b < kBlobs ? bytes : "another"));
    message.set_size_bytes(static_cast<int64_t>(bytes.size()));
    message.set_data(bytes);
    message.set_finish(true);
    request.add_digests(message.digest());
    writer->Write(message);
  }
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::DATA_LOSS);
  v1::FindMissingResponse response;
  ASSERT_TRUE(client_->blobs->FindMissing(&find_context, request, &response).ok());
  EXPECT_THAT(response.missing(), testing::ElementsAre(Sha256Hex("another")));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/blobs/tmp")) << "nothing half-written stays";
}

TEST_F(ServerTest, ABlobThatCannotBeKeptFailsItsStream) {
  // A file stands where the folder of the blob's digest would be. The stream learns of it only when it has sent all.
  const std::string digest = Sha256Hex("homeless");
  std::ofstream(absl::StrCat(folder_, "/blobs/", digest.substr(0, 2))) << "in the way";
  const grpc::Status written = client_->WriteBlob(digest, "homeless");
  EXPECT_THAT(written.error_message(), HasSubstr("cannot rename to"));
  grpc::ClientContext context;
  v1::FindMissingRequest request;
  v1::FindMissingResponse response;
  request.add_digests(digest);
  ASSERT_TRUE(client_->blobs->FindMissing(&context, request, &response).ok());
  EXPECT_THAT(response.missing(), testing::ElementsAre(digest));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/blobs/tmp")) << "nothing half-written stays";
}

TEST_F(ServerTest, ListsWorkersAndCapabilitiesAndPlans) {
  FakeWorker worker(address_, "anna");
  v1::SubmitRequest request = client_->Model("the plan");
  grpc::ClientContext plan_context, admin_context, capabilities_context;
  v1::PlanResponse plan;
  ASSERT_TRUE(client_->compile->Plan(&plan_context, request, &plan).ok());
  EXPECT_EQ(plan.text(), "the plan");
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(client_->admin->ListWorkers(&admin_context, {}, &workers).ok());
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_EQ(workers.workers(0).info().name(), "anna");
  v1::Capabilities capabilities;
  ASSERT_TRUE(client_->compile->GetCapabilities(&capabilities_context, {}, &capabilities).ok());
  ASSERT_EQ(capabilities.targets_size(), 1);
  EXPECT_EQ(capabilities.targets(0).kind(), "cpu");
  EXPECT_EQ(capabilities.chunk_size_bytes(), 4 << 20);
}

TEST_F(ServerTest, WatchOfAnUnknownJobAndManyWatchersAtOnce) {
  grpc::Status status;
  EXPECT_TRUE(client_->Watch("j-none", 0, &status).empty());
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  FakeWorker worker(address_, "a");
  v1::SubmitResponse job = client_->Submit(client_->Model("slow"));
  client_->AwaitStarted(job.job_id());
  // More watches than there are threads for calls.
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::JobEvent>>> readers;
  v1::WatchRequest request;
  request.set_job_id(job.job_id());
  for (int i = 0; i < 300; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(client_->compile->Watch(contexts.back().get(), request));
    v1::JobEvent event;
    ASSERT_TRUE(readers.back()->Read(&event));
  }
  EXPECT_EQ(Get(job.job_id()).state(), v1::RUNNING) << "unary calls still pass";
  for (int i = 0; i < 150; ++i) contexts[i]->TryCancel();
  grpc::ClientContext context;
  v1::CancelJobRequest cancel;
  v1::Job cancelled;
  cancel.set_job_id(job.job_id());
  EXPECT_TRUE(client_->compile->Cancel(&context, cancel, &cancelled).ok());
  for (int i = 0; i < 300; ++i) {
    v1::JobEvent event, last;
    while (readers[i]->Read(&event)) last = event;
    grpc::Status finished = readers[i]->Finish();
    if (i >= 150) {
      EXPECT_TRUE(finished.ok());
      EXPECT_EQ(last.state(), v1::CANCELLED);
    }
  }
}

TEST_F(ServerTest, SlowStreamsLeaveTheOtherCallsTheirThreads) {
  const v1::SubmitRequest model = client_->Model("ok");
  struct Stream {  // that sends nothing
    grpc::ClientContext context;
    v1::WriteResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::WriteRequest>> writer;
  };
  std::vector<std::unique_ptr<Stream>> streams;
  const auto open = [&] {
    streams.push_back(std::make_unique<Stream>());
    Stream& stream = *streams.back();
    stream.context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    stream.writer = client_->blobs->Write(&stream.context, &stream.response);
    return &stream;
  };
  for (int i = 0; i < 96; ++i) {
    open();
    while (server_->metrics().Value(Metric::kRpcInFlight) <= i) std::this_thread::yield();
  }
  for (int i = 96; i < 140; ++i) {
    const grpc::Status refused = open()->writer->Finish();
    ASSERT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED) << "stream " << i << ": " << refused.error_message();
    EXPECT_THAT(refused.error_message(), HasSubstr("96 streams are open"));
  }
  EXPECT_EQ(client_->Submit(model).state(), v1::QUEUED) << "other calls pass";
  for (int i = 0; i < 96; ++i) streams[i]->context.TryCancel();
  for (int i = 0; i < 96; ++i) streams[i]->writer->Finish();
}

TEST_F(ServerTest, AFullDiskIsToldBeforeAnythingIsLost) {
  FakeWorker worker(address_, "a");
  const v1::SubmitRequest request = client_->Model("build 1");
  EXPECT_EQ(Health(), 1);
  free_bytes_ = 1 << 20;
  while (Health() == 1) std::this_thread::yield();
  EXPECT_EQ(Health(), 2);
  const grpc::Status refused = client_->TrySubmit(request);
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("the server's disk has 1 MiB left"));
  EXPECT_EQ(client_->WriteBlob(Sha256Hex("new"), "new").error_code(), grpc::RESOURCE_EXHAUSTED);
  free_bytes_ = int64_t{1} << 40;
  while (Health() != 1) std::this_thread::yield();
  EXPECT_EQ(client_->Watch(client_->Submit(request).job_id()).back().state(), v1::SUCCEEDED);
}

TEST_F(ServerTest, FolderAndAddressesBelongToOneServer) {
  auto second = TryStart({"127.0.0.1:0"});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat("process ", getpid())));

  ServerOptions options;
  options.state_folder = folder_ + "-other";
  options.listen = {address_};
  EXPECT_EQ(Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule}).status().code(),
            absl::StatusCode::kUnavailable);
  options.listen = {"127.0.0.1:0"};
  for (const char* address : {"127.0.0.1:0", "localhost:0", "[::1]:0", "0.0.0.0:0"}) {
    options.listen = {address};
    const absl::Status open =
        Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule}).status();
    EXPECT_EQ(open.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(open.message()), HasSubstr("--tls-cert"));
  }
  options.listen = {"127.0.0.1:0"};
  options.insecure = true;
  auto tcp = Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule});
  ASSERT_TRUE(tcp.ok()) << tcp.status();
  options.state_folder += "2";
  options.listen = (*tcp)->addresses();
  EXPECT_THAT(options.listen[0], testing::Not(HasSubstr(":0 ")));
  EXPECT_EQ(Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule}).status().code(),
            absl::StatusCode::kUnavailable);
  options.listen = {"nonsense"};
  EXPECT_EQ(Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule}).status().code(),
            absl::StatusCode::kInvalidArgument);
  tcp->reset();

  std::filesystem::create_directories(folder_ + "-open");
  std::filesystem::permissions(folder_ + "-open", std::filesystem::perms(0755));
  options.listen = {absl::StrCat("unix:", folder_, "-open/s")};
  options.insecure = false;
  EXPECT_EQ(Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  options.insecure = true;
  std::string warned;
  options.log = [&](const LogLine& line) {
    if (line.level == LogLevel::kWarning) warned += line.message + " " + line.fields.front().value;
  };
  EXPECT_TRUE(Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule}).ok());
  EXPECT_EQ(warned, absl::StrCat("--insecure: whoever reaches this address may do everything, unencrypted ",
                                 options.listen.front()));
  std::filesystem::remove_all(folder_ + "-open");
  std::filesystem::remove_all(folder_ + "-other");
  std::filesystem::remove_all(folder_ + "-other2");
}

}  // namespace
}  // namespace fusion
