// Tests the calls of the service Worker, and how jobs wait for workers.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/server_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

using WorkerServiceTest = ServerFixture;

TEST_F(WorkerServiceTest, WaitsForAWorkerAndSaysSo) {
  v1::SubmitResponse job = client_->Submit(client_->Model("build 1"));
  client_->AwaitStarted(job.job_id());
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

}  // namespace
}  // namespace fusion
