// Fibers: threads that one thread of the machine runs, one at a time and in an order that a seed decides. A fiber runs
// until it blocks. Time stands still while one can run, and jumps to the next moment at which one can.
#ifndef FUSION_SERVER_SIMULATION_FIBERS_H_
#define FUSION_SERVER_SIMULATION_FIBERS_H_

#include <setjmp.h>
#include <ucontext.h>

#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/scheduler/threads.h"
#include "server/simulation/random.h"

namespace fusion::simulation {

class Fibers {
 public:
  // `random` must outlive it.
  explicit Fibers(SeededRandom* random) : random_(random) {}
  ~Fibers();  // every fiber must have ended
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  absl::Time now() const { return now_; }
  int alive() const { return static_cast<int>(fibers_.size()); }
  void Add(std::function<void()> body);
  // Runs one fiber until it blocks or ends. Returns false, and does nothing, when none will ever run again.
  bool Step();

  // For fibers. Block returns when `ready` holds, or at `until`.
  void Block(absl::FunctionRef<bool()> ready, absl::Time until);
  void Sleep(absl::Duration duration) {
    Block([] { return false; }, now_ + duration);
  }
  // Lets others run that can.
  void Yield() {
    Block([] { return true; }, now_);
  }

 private:
  struct Fiber {
    ucontext_t context;  // where it begins
    jmp_buf place;       // where it blocks
    std::unique_ptr<char[]> stack;
    std::function<void()> body;
    absl::FunctionRef<bool()>* ready = nullptr;  // null: it has not started
    absl::Time until;
    bool ended = false;
  };
  static void Enter(unsigned high, unsigned low);
  // Runs running_ until it blocks or ends.
  void Resume();

  SeededRandom* const random_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  jmp_buf main_;
  Fiber* running_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> can_run_;  // only used in Step
};

// The threads of one simulated process. After Kill none of them waits any more: the process has no effect then, and the
// simulation only wants to have its threads back.
class FiberThreads : public Threads {
 public:
  explicit FiberThreads(Fibers* fibers) : fibers_(fibers) {}
  void Kill() { killed_ = true; }
  bool killed() const { return killed_; }

  std::unique_ptr<Thread> Start(std::function<void()> body) override;
  void Sleep(absl::Duration duration) override;
  void WaitFor(SteadyCondVar* changed, absl::Mutex* mutex, absl::Duration timeout) override;
  void Await(absl::Mutex* mutex, const absl::Condition& condition) override;

 private:
  Fibers* const fibers_;
  bool killed_ = false;
};

}  // namespace fusion::simulation

#endif  // FUSION_SERVER_SIMULATION_FIBERS_H_
