// A compilation that ends the whole server, in processes of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/server.h"
#include "server/testing/fake_compile.h"
#include "server/testing/test_client.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// The folder is the same in the processes that a death test starts.
std::string Folder() {
  setenv("FUSION_JOB_ATTEMPTS_TEST", absl::StrCat("/tmp/fusion-job-attempts-", getpid()).c_str(), /*overwrite=*/0);
  return getenv("FUSION_JOB_ATTEMPTS_TEST");
}
std::string Address() { return absl::StrCat("unix:", Folder(), "/s"); }

std::unique_ptr<Server> Serve() {
  ServerOptions options;
  options.state_folder = Folder();
  options.listen = {Address()};
  options.first_worker_grace = absl::ZeroDuration();
  options.compile_threads = 2;
  const auto compile = [](const ModelFiles& files, const CompileOptions& compile_options, const CompileContext& context,
                          const std::string& path) {
    context.progress({"simplify", 0, 0, "a stage that the model does not survive"});
    if (files.model_name == "deadly") _exit(3);
    return FakeCompile(files, compile_options, context, path);
  };
  auto server = Server::Start(options, {compile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::string Submit(TestClient* client, const std::string& name) {
  v1::SubmitRequest request = client->Model("ok");
  request.set_model_name(name);
  request.mutable_options()->set_target("cuda:sm_90");
  request.mutable_options()->set_threads(name == "deadly" ? 1 : 2);  // another key
  return client->Submit(request).job_id();
}

// Returns only if the server lives on after the jobs that it found or got have ended.
void ServeUntilAllEnd(bool submit) {
  const std::unique_ptr<Server> server = Serve();
  TestClient client(Address());
  if (submit) {
    Submit(&client, "harmless");
    client.Watch(Submit(&client, "deadly"));
  }
  grpc::ClientContext context;
  v1::ListJobsResponse jobs;
  client.compile->List(&context, {}, &jobs);
  for (const v1::Job& job : jobs.jobs()) client.Watch(job.job_id());
}

TEST(JobAttemptsDeathTest, AJobThatEndsTheServerIsGivenUpWithItsEvidence) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Folder();
  for (int start = 0; start < 3; ++start) {
    EXPECT_EXIT(ServeUntilAllEnd(start == 0), ::testing::ExitedWithCode(3), "") << "start " << start;
  }
  // On a server that tries the job once more this process ends here.
  const std::unique_ptr<Server> server = Serve();
  TestClient client(Address());
  grpc::ClientContext context;
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(client.compile->List(&context, {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 2);
  for (const v1::Job& listed : jobs.jobs()) {
    const v1::JobEvent last = client.Watch(listed.job_id()).back();
    if (listed.model_name() == "harmless") {
      EXPECT_EQ(last.state(), v1::SUCCEEDED) << "it ran beside the other one";
      continue;
    }
    EXPECT_EQ(last.state(), v1::FAILED);
    EXPECT_EQ(last.error().code(), grpc::INTERNAL);
    EXPECT_THAT(last.error().message(), HasSubstr("ended 3 times while it compiled 'deadly'"));
    EXPECT_THAT(last.error().message(), HasSubstr("Last stage: simplify"));
  }
  std::filesystem::remove_all(Folder());
}

}  // namespace
}  // namespace fusion
