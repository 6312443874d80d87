// Tests the calls of the service Worker, and how jobs wait for workers.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/worker_protocol.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

using WorkerServiceTest = ServerFixture;

TEST_F(WorkerServiceTest, WaitsForAWorkerAndSaysSo) {
  v1::SubmitResponse job = client_->Submit(client_->Model("build 1"));
  FakeWorker worker(address_, "late");
  std::vector<v1::JobEvent> events = client_->Watch(job.job_id());
  EXPECT_EQ(events.back().state(), v1::SUCCEEDED);
  EXPECT_EQ(FirstMessageWith(events, "no worker"), "no worker for cpu; kinds attached: none");
}

TEST_F(WorkerServiceTest, GivesUpWaitingAfterTheClientsTimeout) {
  v1::SubmitRequest request = client_->Model("build 1");
  request.set_queue_timeout_ms(150);
  const v1::JobEvent last = client_->Watch(client_->Submit(request).job_id()).back();
  EXPECT_EQ(last.error().code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(last.error().message(), HasSubstr("no worker for cpu"));
}

TEST_F(WorkerServiceTest, ServesItsOwnProtocolAndTheOneBefore) {
  for (const int protocol : {kOldestWorkerProtocol - 1, kOldestWorkerProtocol, kWorkerProtocol, kWorkerProtocol + 1}) {
    v1::SynchronizeRequest request;
    request.set_worker_id(absl::StrCat("w", protocol));
    *request.mutable_info() = CpuWorkerInfo("w");
    request.mutable_info()->set_protocol(protocol);
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    const grpc::Status status = client_->worker->Synchronize(&context, request, &response);
    const bool served = protocol == kOldestWorkerProtocol || protocol == kWorkerProtocol;
    EXPECT_EQ(status.ok(), served) << protocol << ": " << status.error_message();
    if (!served) {
      EXPECT_THAT(status.error_message(), HasSubstr("update the older of the two"));
    }
  }
}

// A worker of protocol 2 would take a whole model for a malformed payload, and be blamed.
TEST_F(WorkerServiceTest, AWorkerOfTheProtocolBeforeModelsIsGivenNone) {
  v1::SynchronizeRequest attach;
  attach.set_worker_id("old");
  *attach.mutable_info() = CpuWorkerInfo("old");
  attach.mutable_info()->set_protocol(kFirstProtocolOfModels - 1);
  grpc::ClientContext context;
  v1::SynchronizeResponse response;
  ASSERT_TRUE(client_->worker->Synchronize(&context, attach, &response).ok());
  v1::SubmitRequest request = client_->Model("ok");
  request.mutable_options()->set_target("cpu");
  request.set_measure(true);
  const v1::JobEvent last = client_->Watch(client_->Submit(request).job_id()).back();
  EXPECT_EQ(last.state(), v1::SUCCEEDED) << last.error().message();
  EXPECT_THAT(last.checks().measurement().not_done(), HasSubstr("no worker"));
}

TEST_F(WorkerServiceTest, WrongFenceChangesNothing) {
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

TEST_F(WorkerServiceTest, WhatAWorkerSaysGoesToTheJobOfTheTaskThatItHolds) {
  const v1::SubmitResponse job = client_->Submit(client_->Model("build 1"));
  v1::SynchronizeRequest request;
  request.set_worker_id("w");
  *request.mutable_info() = CpuWorkerInfo("rack7");
  request.set_max_wait_ms(5000);
  const auto synchronize = [&] {
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    EXPECT_TRUE(client_->worker->Synchronize(&context, request, &response).ok());
    return response;
  };
  v1::SynchronizeResponse response = synchronize();
  while (!response.has_task()) response = synchronize();
  const v1::Task task = response.task();
  EXPECT_EQ(task.job_id(), job.job_id());
  EXPECT_EQ(task.trace_id(), job.trace_id());
  const auto say = [&](const std::string& message) {
    request.clear_lines();
    v1::LogRecord& line = *request.add_lines();
    line.set_level("warning");
    line.set_message(message);
    (*line.mutable_fields())["job"] = "j-ANOTHER000";
    (*line.mutable_fields())["source"] = "server";
  };
  request.mutable_current()->set_task_id(task.task_id());
  request.mutable_current()->set_fence(task.fence() + 1);
  say("of a lease that is not ours");
  synchronize();
  request.mutable_current()->set_fence(task.fence());
  *request.mutable_current()->mutable_result() = FakeWorker::Good(task, client_->ReadBlob(task.payload_digest()));
  request.set_max_wait_ms(0);
  say("clang warns");
  synchronize();
  EXPECT_EQ(client_->Watch(job.job_id()).back().state(), v1::SUCCEEDED);
  grpc::ClientContext context;
  v1::JobLogsRequest asked;
  asked.set_job_id(job.job_id());
  asked.set_level("warning");
  v1::JobLogsResponse answer;
  ASSERT_TRUE(client_->compile->Logs(&context, asked, &answer).ok());
  ASSERT_EQ(answer.lines_size(), 1);
  EXPECT_EQ(answer.lines(0).source(), "worker rack7");
  EXPECT_EQ(answer.lines(0).message(), "clang warns");
}

}  // namespace
}  // namespace fusion
