#include "server/testing/server_fixture.h"

#include <grpcpp/generic/generic_stub.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/testing/fake_compile.h"

namespace fusion {
namespace {

std::string NewFolder() {
  static int count = 0;
  return absl::StrCat("/tmp/fusion-server-test-", getpid(), "-", count++);
}

}  // namespace

ServerFixture::ServerFixture() : folder_(NewFolder()), address_(absl::StrCat("unix:", folder_, "/s")) {
  std::filesystem::remove_all(folder_);
  StartServer();
  client_ = std::make_unique<TestClient>(address_);
}

ServerFixture::~ServerFixture() {
  server_.reset();
  std::filesystem::remove_all(folder_);
}

absl::StatusOr<std::unique_ptr<Server>> ServerFixture::TryStart(std::vector<std::string> listen) {
  ServerOptions options;
  options.state_folder = folder_;
  options.listen = std::move(listen);
  options.first_worker_grace = absl::Milliseconds(200);
  options.scheduler.lease = options.scheduler.heartbeat = absl::Hours(1);
  options.identify = identify_;
  options.free_bytes = [this] { return free_bytes_.load(); };
  options.log = [this](const LogLine& line) {
    absl::MutexLock lock(&log_mutex_);
    log_.push_back(line);
  };
  return Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule});
}

void ServerFixture::StartServer() {
  auto server = TryStart({address_});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

v1::Job ServerFixture::Get(const std::string& id) {
  grpc::ClientContext context;
  v1::GetJobRequest request;
  v1::Job job;
  request.set_job_id(id);
  EXPECT_TRUE(client_->compile->Get(&context, request, &job).ok());
  return job;
}

std::vector<std::string> ServerFixture::LogOf(const std::string& job_id) {
  std::vector<std::string> messages;
  absl::MutexLock lock(&log_mutex_);
  for (const LogLine& line : log_) {
    for (const LogField& field : line.fields) {
      if (field.key == "job" && field.value == job_id) messages.push_back(line.message);
    }
  }
  return messages;
}

std::string ServerFixture::FirstMessageWith(const std::vector<v1::JobEvent>& events, const std::string& words) {
  for (const v1::JobEvent& event : events) {
    if (event.message().find(words) != std::string::npos) return event.message();
  }
  return "";
}

int ServerFixture::Health() {
  grpc::GenericStub stub(client_->channel);
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  grpc::CompletionQueue queue;
  const grpc::Slice none("", 0);
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&none, 1), &queue);
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

}  // namespace fusion
