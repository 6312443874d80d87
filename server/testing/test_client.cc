#include "server/testing/test_client.h"

#include "compiler/cost/device_model.h"
#include "gtest/gtest.h"
#include "proto/worker_protocol.h"
#include "runtime/base/sha256.h"

namespace fusion {

TestClient::TestClient(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  compile = v1::Compile::NewStub(channel);
  blobs = v1::Blobs::NewStub(channel);
  worker = v1::Worker::NewStub(channel);
  admin = v1::WorkerAdmin::NewStub(channel);
  profile = v1::Profile::NewStub(channel);
}

grpc::Status TestClient::WriteBlob(const std::string& digest, const std::string& bytes) {
  grpc::ClientContext context;
  v1::WriteResponse response;
  auto writer = blobs->Write(&context, &response);
  const size_t half = bytes.size() / 2;
  v1::WriteRequest first, second;
  first.set_digest(digest);
  first.set_size_bytes(static_cast<int64_t>(bytes.size()));
  first.set_data(bytes.substr(0, half));
  second.set_data(bytes.substr(half));
  second.set_finish(true);
  writer->Write(first);
  writer->Write(second);
  writer->WritesDone();
  return writer->Finish();
}

std::string TestClient::ReadBlob(const std::string& digest, int64_t offset) {
  absl::StatusOr<std::string> bytes = TryReadBlob(digest, offset);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or("");
}

absl::StatusOr<std::string> TestClient::TryReadBlob(const std::string& digest, int64_t offset) {
  grpc::ClientContext context;
  v1::ReadRequest request;
  request.set_digest(digest);
  request.set_offset(offset);
  auto reader = blobs->Read(&context, request);
  std::string bytes;
  for (v1::ReadResponse piece; reader->Read(&piece);) bytes += piece.data();
  grpc::Status status = reader->Finish();
  if (!status.ok()) return absl::UnavailableError(status.error_message());
  return bytes;
}

v1::SubmitRequest TestClient::Model(const std::string& bytes) {
  v1::SubmitRequest request;
  request.set_model_name("test");
  v1::ModelFile* file = request.add_files();
  file->set_path("model.onnx");
  file->set_size_bytes(static_cast<int64_t>(bytes.size()));
  for (size_t offset = 0; offset < bytes.size(); offset += 4 << 20) {
    const std::string chunk = bytes.substr(offset, 4 << 20);
    file->add_chunk_digests(Sha256Hex(chunk));
    grpc::Status status = WriteBlob(Sha256Hex(chunk), chunk);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  return request;
}

grpc::Status TestClient::TrySubmit(const v1::SubmitRequest& request, v1::SubmitResponse* response) {
  grpc::ClientContext context;
  v1::SubmitResponse ignored;
  return compile->Submit(&context, request, response != nullptr ? response : &ignored);
}

v1::SubmitResponse TestClient::Submit(const v1::SubmitRequest& request) {
  v1::SubmitResponse response;
  grpc::Status status = TrySubmit(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

std::vector<v1::JobEvent> TestClient::Watch(const std::string& job_id, int64_t resume_seq, grpc::Status* status,
                                            const std::function<void(const v1::JobEvent&)>& on_event) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  v1::WatchRequest request;
  request.set_job_id(job_id);
  request.set_resume_seq(resume_seq);
  auto reader = compile->Watch(&context, request);
  std::vector<v1::JobEvent> events;
  for (v1::JobEvent event; reader->Read(&event);) {
    EXPECT_EQ(event.seq(), resume_seq + static_cast<int64_t>(events.size()) + 1) << "a gap";
    events.push_back(event);
    if (on_event != nullptr) on_event(event);
  }
  grpc::Status finished = reader->Finish();
  if (status != nullptr) *status = finished;
  return events;
}

void TestClient::AwaitStarted(const std::string& job_id) {
  grpc::ClientContext context;
  v1::WatchRequest request;
  request.set_job_id(job_id);
  auto reader = compile->Watch(&context, request);
  v1::JobEvent event;
  while (reader->Read(&event) && event.state() == v1::QUEUED) {
  }
  EXPECT_NE(event.state(), v1::QUEUED) << "the watch ended before the job started";
  context.TryCancel();
  reader->Finish();
}

v1::WorkerInfo CpuWorkerInfo(const std::string& name) {
  v1::WorkerInfo info;
  info.set_name(name);
  info.set_protocol(kWorkerProtocol);
  info.add_measure_kinds("cpu");
  v1::ToolchainInfo* toolchain = info.add_toolchains();
  toolchain->set_kind("cpu");
  toolchain->set_version("clang 14");
  DeviceModel model;
  model.name = "test device";
  info.set_device_model_json(DeviceModelToJson(model));
  return info;
}

FakeWorker::FakeWorker(const std::string& address, v1::WorkerInfo info, Behaviour behaviour)
    : client_(address), info_(std::move(info)), behaviour_(std::move(behaviour)), thread_([this] { Loop(); }) {
  attached_.WaitForNotification();
}

FakeWorker::~FakeWorker() {
  stopping_ = true;
  thread_.join();
}

v1::TaskResult FakeWorker::Good(const v1::Task& task, const std::string& payload) {
  v1::TaskResult result;
  if (task.kind() == v1::BUILD) {
    v1::BuildPayload units;
    EXPECT_TRUE(units.ParseFromString(payload));
    v1::BuildResult built;
    for (const auto& unit : units.units()) built.add_binaries("bin(" + unit.source() + ")");
    result.set_inline_(built.SerializeAsString());
  } else {
    v1::MeasurePayload asked;
    asked.ParseFromString(payload);
    v1::MeasureResults measured;
    if (asked.has_model() && asked.model().verify()) {
      v1::ModelVerification& verified = *measured.mutable_verification();
      verified.set_verdict(v1::OUTPUT_OK);
      verified.set_outputs_total(1);
      verified.add_outputs()->set_verdict(v1::OUTPUT_OK);
    } else if (asked.has_model()) {
      v1::ModelMeasurement& timed = *measured.mutable_measurement();
      for (v1::RunTimes* times : {timed.mutable_bundle(), timed.mutable_unfused()}) {
        times->set_runs(3);
        times->set_min_ns(900);
        times->set_p25_ns(950);
        times->set_median_ns(1000);
        times->set_p75_ns(1100);
      }
      timed.set_rounds(3);
      timed.set_threads(1);
      timed.set_ratio(1.5);
      timed.set_ratio_p25(1.4);
      timed.set_ratio_p75(1.6);
    }
    for (int i = 0; i < asked.plans().plans_size(); ++i) {
      measured.mutable_plans()->set_rounds(20);
      v1::PlanTimes& one = *measured.mutable_plans()->add_plans();
      const double ratio = 1 + 0.1 * i;
      one.set_median_ns(1000 * ratio);
      one.set_ratio(ratio);
      one.set_ratio_low(ratio - 0.001);
      one.set_ratio_high(ratio + 0.001);
    }
    for (int i = 0; i < asked.items_size(); ++i) {
      v1::MeasureResult& one = *measured.add_results();
      for (double sample : {1100.0, 1000.0, 900.0}) one.add_samples_ns(sample);
      one.set_median_ns(1000);
    }
    result.set_inline_(measured.SerializeAsString());
  }
  return result;
}

// Waits for a connection, in steps, because the server may never come back before the test ends.
void FakeWorker::AwaitServer() {
  client_.channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
}

void FakeWorker::Loop() {
  v1::SynchronizeRequest request;
  request.set_worker_id("worker-" + info_.name());
  *request.mutable_info() = info_;
  request.set_max_wait_ms(0);  // the first call attaches the worker and is answered at once
  while (!stopping_) {
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    if (!client_.worker->Synchronize(&context, request, &response).ok()) {
      AwaitServer();
      continue;
    }
    if (!attached_.HasBeenNotified()) attached_.Notify();
    request.set_max_wait_ms(200);
    request.clear_current();
    if (!response.has_task()) continue;
    const v1::Task& task = response.task();
    absl::StatusOr<std::string> payload = client_.TryReadBlob(task.payload_digest());
    while (!payload.ok() && !stopping_) {  // the server may be restarting
      AwaitServer();
      payload = client_.TryReadBlob(task.payload_digest());
    }
    if (!payload.ok()) return;
    ++(task.kind() == v1::BUILD ? builds_ : measurements_);
    v1::CurrentTask* current = request.mutable_current();
    current->set_task_id(task.task_id());
    current->set_fence(task.fence());
    *current->mutable_result() = behaviour_(task, *payload);
  }
}

v1::TaskResult ErrorResult(grpc::StatusCode code, const std::string& message) {
  v1::TaskResult result;
  result.mutable_error()->set_code(code);
  result.mutable_error()->set_message(message);
  return result;
}

}  // namespace fusion
