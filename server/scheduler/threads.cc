#include "server/scheduler/threads.h"

#include <thread>
#include <utility>

#include "absl/time/clock.h"

namespace fusion {
namespace {

class SystemThread : public Threads::Thread {
 public:
  explicit SystemThread(std::function<void()> body) : thread_(std::move(body)) {}
  void Join() override { thread_.join(); }

 private:
  std::thread thread_;
};

class System : public Threads {
 public:
  std::unique_ptr<Thread> Start(std::function<void()> body) override {
    return std::make_unique<SystemThread>(std::move(body));
  }
  void Sleep(absl::Duration duration) override { absl::SleepFor(duration); }
  void WaitFor(SteadyCondVar* changed, absl::Mutex* mutex, absl::Duration timeout) override {
    changed->WaitFor(mutex, timeout);
  }
  void Await(absl::Mutex* mutex, const absl::Condition& condition) override { mutex->Await(condition); }
};

}  // namespace

Threads* SystemThreads() {
  static System system;  // has no members, so that the order of destruction does not matter
  return &system;
}

}  // namespace fusion
