// Tests the server as a whole over a unix socket, with a compiler and workers whose behaviour the tests decide.
#include "server/server.h"

#include <unistd.h>

#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/sha256.h"
#include "server/testing/fake_compile.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

using ServerTest = ServerFixture;

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
  EXPECT_THAT(FirstMessageWith(events, "the server was stopped"), HasSubstr("starts again"));
  EXPECT_EQ(worker.measurements(), 1) << "the result of the old lease was taken";
}

TEST_F(ServerTest, JobsThatLackABuilderStopNobodyHoweverManyHaveBegun) {
  const auto model = [&](const std::string& text) {
    v1::SubmitRequest request = client_->Model(text);
    request.mutable_options()->set_target("cuda:sm_90");
    return request;
  };
  std::vector<std::string> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back(client_->Submit(model(absl::StrCat("build 1\nweights ", i))).job_id());
  v1::SubmitRequest needs_no_builder = model("ok");
  needs_no_builder.set_queue_timeout_ms(30000);
  EXPECT_EQ(client_->Watch(client_->Submit(needs_no_builder).job_id()).back().state(), v1::SUCCEEDED);
  int queued = 0;
  for (const std::string& id : jobs) queued += Get(id).state() == v1::QUEUED;
  EXPECT_GE(queued, 90) << "few processes wait";
  v1::WorkerInfo info = CpuWorkerInfo("builder");
  info.clear_measure_kinds();
  info.clear_device_model_json();
  info.mutable_toolchains(0)->set_kind("cuda:sm_90");
  FakeWorker builder(address_, info);
  for (const std::string& id : jobs) {
    const std::vector<v1::JobEvent> events = client_->Watch(id);
    ASSERT_EQ(events.back().state(), v1::SUCCEEDED) << events.back().error().message();
  }
  EXPECT_EQ(server_->metrics().Value(Metric::kJobs, {{"outcome", "failed"}}), 0);
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

TEST_F(ServerTest, HealthFollowsBlobsAndPayloadsThatCannotBeWritten) {
  FakeWorker worker(address_, "a");
  int units = 0;
  for (const std::string& folder : {std::string("/blobs/tmp"), std::string("/blobs/payloads")}) {
    SCOPED_TRACE(folder);
    const v1::SubmitRequest request = client_->Model(absl::StrCat("build ", ++units));  // one that nobody has built
    ASSERT_EQ(Health(), 1);
    std::filesystem::rename(folder_ + folder, folder_ + "/elsewhere");
    EXPECT_FALSE(client_->WriteBlob(Sha256Hex(folder), folder).ok() && folder == "/blobs/tmp");
    const std::string job = client_->Submit(request).job_id();
    while (Health() == 1) std::this_thread::yield();
    EXPECT_EQ(Health(), 2);
    std::filesystem::rename(folder_ + "/elsewhere", folder_ + folder);
    while (Health() != 1) std::this_thread::yield();
    (void)client_->Watch(job);
  }
  EXPECT_EQ(client_->Watch(client_->Submit(client_->Model("build 1 after")).job_id()).back().state(), v1::SUCCEEDED);
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
