// Tests the calls of the service Compile: submissions, their keys, cancellation and watching.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

using CompileServiceTest = ServerFixture;

TEST_F(CompileServiceTest, WhoJoinsAJobCancelsForHimselfAndTheLastOneEndsIt) {
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

TEST_F(CompileServiceTest, AJobKeepsItsLogAndTheTraceOfItsSubmission) {
  constexpr char kTrace[] = "0123456789abcdef0123456789abcdef";
  FakeWorker worker(address_, "a");
  v1::SubmitRequest request = client_->Model("build 1");
  request.set_trace_id(kTrace);
  const v1::SubmitResponse job = client_->Submit(request);
  EXPECT_EQ(job.trace_id(), kTrace);
  EXPECT_EQ(client_->Watch(job.job_id()).back().state(), v1::SUCCEEDED);
  EXPECT_EQ(Get(job.job_id()).trace_id(), kTrace);
  const auto logs = [&](int64_t after, int limit, const std::string& level) {
    grpc::ClientContext context;
    v1::JobLogsRequest asked;
    asked.set_job_id(job.job_id());
    asked.set_after(after);
    asked.set_limit(limit);
    asked.set_level(level);
    v1::JobLogsResponse answer;
    EXPECT_TRUE(client_->compile->Logs(&context, asked, &answer).ok());
    return answer;
  };
  std::vector<std::string> said;
  const auto all = logs(0, 0, "");
  for (const v1::LogRecord& line : all.lines()) {
    said.push_back(line.message());
    EXPECT_EQ(line.source(), "server");
  }
  EXPECT_THAT(said, ::testing::IsSupersetOf({"submitted", "started", "task leased", "task done", "compiled"}));
  EXPECT_TRUE(all.ended());
  EXPECT_FALSE(all.more());
  std::vector<std::string> by_pages;
  for (int64_t after = 0;;) {
    const auto page = logs(after, 2, "");
    EXPECT_LE(page.lines_size(), 2);
    for (const v1::LogRecord& line : page.lines()) by_pages.push_back(line.message());
    after = page.next_after();
    if (!page.more()) break;
  }
  EXPECT_EQ(by_pages, said);
  EXPECT_EQ(logs(0, 0, "error").lines_size(), 0);
  const v1::SubmitResponse again = client_->Submit(request);
  EXPECT_TRUE(again.from_store());
  absl::MutexLock lock(&log_mutex_);
  for (const LogLine& line : log_) {
    for (const LogField& field : line.fields) {
      if (field.key == "trace") EXPECT_EQ(field.value, kTrace);
    }
  }
}

TEST_F(CompileServiceTest, ASubmissionWithoutATraceGetsOneAndAWrongOneIsRefused) {
  FakeWorker worker(address_, "a");
  v1::SubmitRequest request = client_->Model("slow");
  const v1::SubmitResponse first = client_->Submit(request), second = client_->Submit(request);
  EXPECT_EQ(first.trace_id().size(), 32);
  EXPECT_TRUE(second.joined());
  EXPECT_EQ(second.trace_id(), first.trace_id()) << "that of the job, under which all its lines are";
  request.set_trace_id("../../etc/passwd");
  EXPECT_EQ(client_->TrySubmit(request).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(CompileServiceTest, ErrorsOfTheCompilerKeepCodeAndWords) {
  FakeWorker worker(address_, "a");
  v1::SubmitResponse job = client_->Submit(client_->Model("fail Conv 'a': group=3 does not divide C=64"));
  const v1::JobEvent last = client_->Watch(job.job_id()).back();
  EXPECT_EQ(last.state(), v1::FAILED);
  EXPECT_EQ(last.error().code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(last.error().message(), "Conv 'a': group=3 does not divide C=64");
  EXPECT_EQ(Get(job.job_id()).error().code(), grpc::INVALID_ARGUMENT);
}

TEST_F(CompileServiceTest, BadSubmissionsAreRefusedWithReasons) {
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

TEST_F(CompileServiceTest, DisabledRulesArePartOfTheKey) {
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

TEST_F(CompileServiceTest, TheSizeIsPartOfTheKey) {
  FakeWorker worker(address_, "anna");
  const v1::SubmitRequest unsaid = client_->Model("build 1");
  v1::SubmitRequest any = unsaid, small = unsaid;
  any.mutable_options()->set_size("any");
  small.mutable_options()->set_size("small");
  client_->Watch(client_->Submit(unsaid).job_id());
  EXPECT_EQ(client_->Submit(unsaid).key(), client_->Submit(any).key());
  EXPECT_NE(client_->Submit(unsaid).key(), client_->Submit(small).key());
}

TEST_F(CompileServiceTest, ListsWorkersAndCapabilitiesAndPlans) {
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

TEST_F(CompileServiceTest, WatchOfAnUnknownJobAndManyWatchersAtOnce) {
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

}  // namespace
}  // namespace fusion
