// A server over a unix socket in a folder of its own, with a compiler whose behaviour the model's text decides, and a
// client of it. The folder is gone with the fixture.
#ifndef FUSION_SERVER_TESTING_SERVER_FIXTURE_H_
#define FUSION_SERVER_TESTING_SERVER_FIXTURE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "server/server.h"
#include "server/testing/test_client.h"

namespace fusion {

class ServerFixture : public ::testing::Test {
 protected:
  ServerFixture();
  ~ServerFixture() override;

  // Starts a server over the fixture's folder. No lease ends while it runs, however busy the machine is.
  absl::StatusOr<std::unique_ptr<Server>> TryStart(std::vector<std::string> listen);
  // Starts the fixture's server at `address_`; a fatal failure where it does not start.
  void StartServer();

  v1::Job Get(const std::string& id);
  // Returns the messages of the log's lines about a job.
  std::vector<std::string> LogOf(const std::string& job_id);
  // Returns the first message that contains `words`; empty if there is none.
  std::string FirstMessageWith(const std::vector<v1::JobEvent>& events, const std::string& words);
  // The answer of grpc.health.v1.Health/Check: 1 is SERVING, 2 is NOT_SERVING, -1 no answer.
  int Health();

  Identify identify_;  // of servers that start from now on; empty: everybody is the socket's owner
  std::atomic<int64_t> free_bytes_{int64_t{1} << 40};  // of the server's disk
  absl::Mutex log_mutex_;
  std::vector<LogLine> log_ ABSL_GUARDED_BY(log_mutex_);
  const std::string folder_, address_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<TestClient> client_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_TESTING_SERVER_FIXTURE_H_
