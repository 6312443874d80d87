// Shared by the service tests: a client that uploads and watches, and a worker whose behaviour the test decides.
#ifndef FUSION_SERVER_TESTING_TEST_CLIENT_H_
#define FUSION_SERVER_TESTING_TEST_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "proto/blob.grpc.pb.h"
#include "proto/compile.grpc.pb.h"
#include "proto/profile.grpc.pb.h"
#include "proto/worker.grpc.pb.h"

namespace fusion {

class TestClient {
 public:
  explicit TestClient(const std::string& address);

  grpc::Status WriteBlob(const std::string& digest, const std::string& bytes);
  std::string ReadBlob(const std::string& digest, int64_t offset = 0);
  absl::StatusOr<std::string> TryReadBlob(const std::string& digest, int64_t offset = 0);
  // Uploads a model of these bytes and returns a request for it.
  v1::SubmitRequest Model(const std::string& bytes);
  v1::SubmitResponse Submit(const v1::SubmitRequest& request);  // expects OK
  grpc::Status TrySubmit(const v1::SubmitRequest& request, v1::SubmitResponse* response = nullptr);
  // Returns all events after `resume_seq` until the stream ends. `on_event`, where given, sees each as it comes.
  std::vector<v1::JobEvent> Watch(const std::string& job_id, int64_t resume_seq = 0, grpc::Status* status = nullptr,
                                  const std::function<void(const v1::JobEvent&)>& on_event = nullptr);

  // Waits for the first event with which the job is no longer queued.
  void AwaitStarted(const std::string& job_id);

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Compile::Stub> compile;
  std::unique_ptr<v1::Blobs::Stub> blobs;
  std::unique_ptr<v1::Worker::Stub> worker;
  std::unique_ptr<v1::WorkerAdmin::Stub> admin;
  std::unique_ptr<v1::Profile::Stub> profile;
};

v1::WorkerInfo CpuWorkerInfo(const std::string& name);

class FakeWorker {
 public:
  using Behaviour = std::function<v1::TaskResult(const v1::Task&, const std::string& payload)>;
  // Returns when the server knows the worker.
  FakeWorker(const std::string& address, const std::string& name, Behaviour behaviour = Good)
      : FakeWorker(address, CpuWorkerInfo(name), std::move(behaviour)) {}
  FakeWorker(const std::string& address, v1::WorkerInfo info, Behaviour behaviour = Good);
  ~FakeWorker();

  // Builds "bin(<source>)" and measures 1000 ns; a whole model runs 1.5 times as long unfused, and is right; plan p takes
  // 1 + p / 10 of the reference's time.
  static v1::TaskResult Good(const v1::Task& task, const std::string& payload);
  int builds() const { return builds_; }
  int measurements() const { return measurements_; }

 private:
  void Loop();
  void AwaitServer();

  TestClient client_;
  const v1::WorkerInfo info_;
  const Behaviour behaviour_;
  std::atomic<int> builds_{0}, measurements_{0};
  std::atomic<bool> stopping_{false};
  absl::Notification attached_;
  std::thread thread_;
};

v1::TaskResult ErrorResult(grpc::StatusCode code, const std::string& message);

}  // namespace fusion

#endif  // FUSION_SERVER_TESTING_TEST_CLIENT_H_
