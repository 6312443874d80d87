// Steps of the wall clock while a worker holds a task. This program has a clock_gettime of its own, whose wall clock
// the test sets; the steady clock is the machine's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/server.h"
#include "server/testing/fake_compile.h"
#include "server/testing/test_client.h"

namespace {
std::atomic<int64_t> wall_offset_s{0};
}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);  // NOLINT(google-runtime-int)
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += wall_offset_s;
  return static_cast<int>(result);
}

namespace fusion {
namespace {

TEST(ClockStep, AnHourForwardsOrBackwardsLosesNoLease) {
  for (const int64_t step_s : {3600, -3600}) {
    wall_offset_s = 0;
    const std::string folder = absl::StrCat("/tmp/fusion-clock-step-", getpid()),
                      address = absl::StrCat("unix:", folder, "/s");
    std::filesystem::remove_all(folder);
    ServerOptions options;
    options.state_folder = folder;
    options.listen = {address};
    options.first_worker_grace = absl::ZeroDuration();
    options.scheduler.lease = options.scheduler.heartbeat = absl::Minutes(30);
    auto server = Server::Start(options, {FakeCompile, FakePlan, {"dnnfusion", "none"}, FakeCheckRule});
    ASSERT_TRUE(server.ok()) << server.status();
    const absl::Time before = absl::Now();
    absl::Notification begun, stepped;
    {
      FakeWorker worker(address, "a", [&](const v1::Task& task, const std::string& payload) {
        if (!begun.HasBeenNotified()) {
          begun.Notify();
          stepped.WaitForNotification();
        }
        return FakeWorker::Good(task, payload);
      });
      TestClient client(address);
      const std::string id = client.Submit(client.Model("build 1")).job_id();
      begun.WaitForNotification();
      wall_offset_s = step_s;
      // absl::Now extrapolates by the cycle counter and asks the kernel every other second.
      while (absl::AbsDuration(absl::Now() - before) < absl::Minutes(50)) std::this_thread::yield();
      // A worker that comes now makes the farm look at its leases before the first one delivers.
      FakeWorker other(address, "b");
      stepped.Notify();
      EXPECT_EQ(client.Watch(id).back().state(), v1::SUCCEEDED);
      EXPECT_EQ(worker.builds() + other.builds(), 1) << "the task was given away, step " << step_s;
      EXPECT_EQ((*server)->metrics().Value(Metric::kLeaseExpiries), 0);
    }
    // Waits in the farm end by the steady clock: with a wall clock that was set back they would last an hour.
    (*server)->Shutdown(absl::Seconds(10));
    server->reset();
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace fusion
