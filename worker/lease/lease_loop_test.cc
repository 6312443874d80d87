#include "worker/lease/lease_loop.h"

#include <functional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

v1::SynchronizeResponse Idle() {
  v1::SynchronizeResponse response;
  response.set_next_sync_ms(1);
  return response;
}

v1::SynchronizeResponse Do(const std::string& id, int64_t fence = 1) {
  v1::SynchronizeResponse response = Idle();
  response.mutable_task()->set_task_id(id);
  response.mutable_task()->set_fence(fence);
  return response;
}

// Answers each call with the next function of a script; the last function repeats.
class ScriptedTransport : public Transport {
 public:
  using Answer = std::function<absl::StatusOr<v1::SynchronizeResponse>(const v1::SynchronizeRequest&)>;
  explicit ScriptedTransport(std::vector<Answer> script) : script_(std::move(script)) {}

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request, absl::Duration) override {
    requests.push_back(request);
    const size_t i = std::min(requests.size(), script_.size()) - 1;
    return script_[i](request);
  }
  void Interrupt() override {}
  void Resume() override {}
  absl::StatusOr<std::string> ReadBlob(const std::string&, int64_t) override { return ""; }
  absl::Status WriteBlob(const std::string& digest, const std::string& bytes) override {
    written = bytes;
    return write_status;
    (void)digest;
  }

  std::vector<v1::SynchronizeRequest> requests;
  std::string written;
  absl::Status write_status;

 private:
  std::vector<Answer> script_;
};

class FunctionExecutor : public TaskExecutor {
 public:
  using Body = std::function<absl::StatusOr<std::string>(const TaskContext&)>;
  explicit FunctionExecutor(Body body) : body_(std::move(body)) {}
  absl::StatusOr<std::string> Execute(const v1::Task&, const std::string&, const TaskContext& context) override {
    ++calls;
    return body_(context);
  }
  std::atomic<int> calls{0};

 private:
  Body body_;
};

LeaseOptions Options() {
  LeaseOptions options;
  options.worker_id = "w";
  options.first_pause = absl::Milliseconds(1);
  options.longest_pause = absl::Milliseconds(4);
  return options;
}

TEST(LeaseLoop, RunsATaskAndDeliversItsResult) {
  FunctionExecutor executor([](const TaskContext&) { return "bytes"; });
  LeaseLoop* loop = nullptr;
  v1::TaskResult delivered;
  ScriptedTransport transport({
      [](const auto&) { return Do("t", 7); },
      [&](const v1::SynchronizeRequest& request) -> absl::StatusOr<v1::SynchronizeResponse> {
        if (!request.current().has_result()) return Do("t", 7);
        EXPECT_EQ(request.current().fence(), 7);
        delivered = request.current().result();
        loop->Abort();
        return Idle();
      },
  });
  // The second function repeats until the result arrives.
  LeaseLoop leases(Options(), &transport, &executor);
  loop = &leases;
  leases.Run();
  EXPECT_EQ(delivered.inline_(), "bytes");
  EXPECT_EQ(executor.calls, 1);
}

TEST(LeaseLoop, RepeatsAResultUntilTheServerTakesIt) {
  FunctionExecutor executor([](const TaskContext&) { return "bytes"; });
  LeaseLoop* loop = nullptr;
  int refusals = 0;
  ScriptedTransport transport({
      [](const auto&) { return Do("t"); },
      [&](const v1::SynchronizeRequest& request) -> absl::StatusOr<v1::SynchronizeResponse> {
        if (!request.current().has_result()) return Do("t");
        if (++refusals < 4) return absl::UnavailableError("restarting");
        loop->Abort();
        return Idle();
      },
  });
  LeaseLoop leases(Options(), &transport, &executor);
  loop = &leases;
  leases.Run();
  EXPECT_EQ(refusals, 4);
  EXPECT_EQ(executor.calls, 1);
}

TEST(LeaseLoop, SaysWhetherTheTaskWaitsForItsTurn) {
  std::atomic<bool> waits_told{false}, runs_told{false};
  FunctionExecutor executor([&](const TaskContext& context) -> absl::StatusOr<std::string> {
    context.waits(true);
    while (!waits_told) std::this_thread::yield();
    context.waits(false);
    while (!runs_told) std::this_thread::yield();
    return "bytes";
  });
  LeaseLoop* loop = nullptr;
  ScriptedTransport transport({
      [](const auto&) { return Do("t"); },
      [&](const v1::SynchronizeRequest& request) -> absl::StatusOr<v1::SynchronizeResponse> {
        const v1::CurrentTask& current = request.current();
        if (!current.has_result()) {
          EXPECT_NE(current.stage(), v1::TASK_STAGE_UNSPECIFIED);
          if (current.stage() == v1::WAITING) waits_told = true;
          if (current.stage() == v1::RUNNING_TASK && waits_told) runs_told = true;
          return Do("t");
        }
        EXPECT_EQ(current.stage(), v1::TASK_STAGE_UNSPECIFIED);
        loop->Abort();
        return Idle();
      },
  });
  LeaseLoop leases(Options(), &transport, &executor);
  loop = &leases;
  leases.Run();
  EXPECT_TRUE(runs_told);
}

TEST(LeaseLoop, CallsAgainWhileARestartedServerKeepsItsLease) {
  EXPECT_LE(1.5 * LeaseOptions().longest_pause, absl::Milliseconds(kLongestReconnectPauseMs)) << "jitter included";
}

TEST(LeaseLoop, StopsATaskThatTheServerHasGivenUp) {
  std::atomic<bool> saw_cancel{false};
  FunctionExecutor executor([&](const TaskContext& context) -> absl::StatusOr<std::string> {
    while (!context.cancelled()) std::this_thread::yield();
    saw_cancel = true;
    return absl::CancelledError("");
  });
  LeaseLoop* loop = nullptr;
  ScriptedTransport transport({
      [](const auto&) { return Do("t"); },
      [](const auto&) { return Idle(); },
      [&](const v1::SynchronizeRequest& request) {
        EXPECT_FALSE(request.has_current());
        loop->Abort();
        return Idle();
      },
  });
  LeaseLoop leases(Options(), &transport, &executor);
  loop = &leases;
  leases.Run();
  EXPECT_TRUE(saw_cancel);
}

TEST(LeaseLoop, ANewFenceIsANewTask) {
  FunctionExecutor executor([](const TaskContext& context) -> absl::StatusOr<std::string> {
    while (!context.cancelled()) std::this_thread::yield();
    return absl::CancelledError("");
  });
  LeaseLoop* loop = nullptr;
  ScriptedTransport transport({
      [](const auto&) { return Do("t", 1); },
      [](const auto&) { return Do("t", 2); },
      [&](const v1::SynchronizeRequest& request) {
        EXPECT_EQ(request.current().fence(), 2);
        loop->Abort();
        return Idle();
      },
  });
  LeaseLoop leases(Options(), &transport, &executor);
  loop = &leases;
  leases.Run();
  EXPECT_EQ(executor.calls, 2);
}

TEST(LeaseLoop, LargeResultsBecomeBlobsAndErrorsKeepTheirCode) {
  for (bool large : {true, false}) {
    FunctionExecutor executor([&](const TaskContext&) -> absl::StatusOr<std::string> {
      if (large) return std::string(2 << 20, 'x');
      return absl::InternalError(std::string(10000, 'e'));
    });
    LeaseLoop* loop = nullptr;
    v1::TaskResult delivered;
    ScriptedTransport transport({
        [](const auto&) { return Do("t"); },
        [&](const v1::SynchronizeRequest& request) {
          if (!request.current().has_result()) return Do("t");
          delivered = request.current().result();
          loop->Abort();
          return Idle();
        },
    });
    LeaseLoop leases(Options(), &transport, &executor);
    loop = &leases;
    leases.Run();
    if (large) {
      EXPECT_EQ(transport.written.size(), 2 << 20);
      EXPECT_EQ(delivered.digest().size(), 64);
    } else {
      EXPECT_EQ(delivered.error().code(), static_cast<int>(absl::StatusCode::kInternal));
      EXPECT_EQ(delivered.error().message().size(), 4096);
    }
  }
}

TEST(LeaseLoop, TellsARefusalFromAnUnreachableServerAndSaysEachOnce) {
  FunctionExecutor executor([](const TaskContext&) { return ""; });
  LeaseLoop* loop = nullptr;
  auto gone = [](const auto&) { return absl::UnavailableError("connection refused"); };
  auto refused = [](const auto&) { return absl::FailedPreconditionError("update the older of the two"); };
  ScriptedTransport transport({gone, gone, refused, refused, [](const auto&) { return Idle(); },
                               [&](const auto&) {
                                 loop->Abort();
                                 return Idle();
                               }});
  std::vector<std::string> lines;
  LeaseOptions options = Options();
  options.log = [&](const LogLine& line) { lines.push_back(line.message); };
  LeaseLoop leases(options, &transport, &executor);
  loop = &leases;
  leases.Run();
  EXPECT_THAT(lines, testing::ElementsAre("server unreachable, trying on: connection refused",
                                          "the server refuses this worker, trying on: update the older of the two",
                                          "server reached again"));
}

// Its token was revoked while it had a result: without this the worker would offer it for ever.
TEST(LeaseLoop, DrainEndsAWorkerThatIsSentAway) {
  FunctionExecutor executor([](const TaskContext&) { return "bytes"; });
  LeaseLoop* loop = nullptr;
  int refusals = 0;
  ScriptedTransport transport({
      [](const auto&) { return Do("t"); },
      [&](const v1::SynchronizeRequest& request) -> absl::StatusOr<v1::SynchronizeResponse> {
        if (!request.current().has_result()) return Do("t");
        if (++refusals == 3) loop->Drain();
        if (refusals == 20) loop->Abort();
        return absl::UnauthenticatedError("the token was revoked");
      },
  });
  LeaseLoop leases(Options(), &transport, &executor);
  loop = &leases;
  leases.Run();
  EXPECT_EQ(refusals, 4) << "it tries on until it is drained, and then once more";
}

TEST(LeaseLoop, DrainDeliversFirst) {
  LeaseLoop* loop = nullptr;
  FunctionExecutor executor([&](const TaskContext&) {
    loop->Drain();
    return "last";
  });
  std::string delivered;
  ScriptedTransport transport({
      [](const auto&) { return Do("t"); },
      [&](const v1::SynchronizeRequest& request) {
        if (request.current().has_result()) {
          EXPECT_TRUE(request.draining());
          delivered = request.current().result().inline_();
          return Idle();
        }
        return Do("t");
      },
  });
  LeaseLoop leases(Options(), &transport, &executor);
  loop = &leases;
  leases.Run();
  EXPECT_EQ(delivered, "last");
}

}  // namespace
}  // namespace fusion
