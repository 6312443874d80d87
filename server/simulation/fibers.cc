#include "server/simulation/fibers.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/base/check.h"

namespace fusion::simulation {
namespace {

constexpr size_t kStackBytes = 256 << 10;

// Stacks of fibers that have ended. A simulation starts hundreds of fibers, and fresh memory costs page faults.
std::vector<std::unique_ptr<char[]>>& SpareStacks() {
  static thread_local std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

}  // namespace

Fibers::~Fibers() { FUSION_CHECK(fibers_.empty(), "a fiber has not ended"); }

void Fibers::Enter(unsigned high, unsigned low) {
  auto* fibers = reinterpret_cast<Fibers*>(static_cast<uintptr_t>(high) << 32 | low);
  fibers->running_->body();
  fibers->running_->body = nullptr;
  fibers->running_->ended = true;
  _longjmp(fibers->main_, 1);  // never comes back
}

// A context is entered once: swapcontext asks the kernel for the mask of signals each time, and jumps do not.
void Fibers::Resume() {
  if (_setjmp(main_) != 0) return;
  if (running_->ready != nullptr) _longjmp(running_->place, 1);
  setcontext(&running_->context);
}

void Fibers::Add(std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  if (SpareStacks().empty()) {
    fiber->stack.reset(new char[kStackBytes]);
  } else {
    fiber->stack = std::move(SpareStacks().back());
    SpareStacks().pop_back();
  }
  fiber->body = std::move(body);
  fiber->until = now_;
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&fiber->context, reinterpret_cast<void (*)()>(&Fibers::Enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
  fibers_.push_back(std::move(fiber));
}

bool Fibers::Step() {
  can_run_.clear();
  absl::Time next = absl::InfiniteFuture();
  for (const std::unique_ptr<Fiber>& fiber : fibers_) {
    if (fiber->until <= now_ || (*fiber->ready)()) {
      can_run_.push_back(fiber.get());
    } else {
      next = std::min(next, fiber->until);
    }
  }
  if (can_run_.empty()) {
    if (next == absl::InfiniteFuture()) return false;
    now_ = next;
    for (const std::unique_ptr<Fiber>& fiber : fibers_) {
      if (fiber->until <= now_) can_run_.push_back(fiber.get());
    }
  }
  running_ = can_run_[static_cast<size_t>(random_->Below(static_cast<int>(can_run_.size())))];
  Resume();
  if (running_->ended) {
    const auto own =
        std::find_if(fibers_.begin(), fibers_.end(), [&](const auto& fiber) { return fiber.get() == running_; });
    SpareStacks().push_back(std::move((*own)->stack));
    fibers_.erase(own);
  }
  running_ = nullptr;
  return true;
}

void Fibers::Block(absl::FunctionRef<bool()> ready, absl::Time until) {
  FUSION_CHECK(running_ != nullptr, "only a fiber may block");
  Fiber* self = running_;
  self->ready = &ready;
  self->until = until;
  if (_setjmp(self->place) == 0) _longjmp(main_, 1);
}

namespace {

class FiberThread : public Threads::Thread {
 public:
  FiberThread(Fibers* fibers, std::function<void()> body) : fibers_(fibers), ended_(std::make_shared<bool>(false)) {
    fibers_->Add([body = std::move(body), ended = ended_] {
      body();
      *ended = true;
    });
  }
  void Join() override {
    fibers_->Block([this] { return *ended_; }, absl::InfiniteFuture());
  }

 private:
  Fibers* const fibers_;
  const std::shared_ptr<bool> ended_;
};

}  // namespace

std::unique_ptr<Threads::Thread> FiberThreads::Start(std::function<void()> body) {
  return std::make_unique<FiberThread>(fibers_, std::move(body));
}

void FiberThreads::Sleep(absl::Duration duration) {
  fibers_->Block([this] { return killed_; }, fibers_->now() + duration);
}

void FiberThreads::WaitFor(SteadyCondVar* changed, absl::Mutex* mutex, absl::Duration timeout) {
  const uint64_t before = changed->signals();
  mutex->Unlock();
  fibers_->Block([&] { return killed_ || changed->signals() != before; }, fibers_->now() + timeout);
  mutex->Lock();
}

void FiberThreads::Await(absl::Mutex* mutex, const absl::Condition& condition) {
  while (!condition.Eval()) {
    mutex->Unlock();
    fibers_->Block([&] { return condition.Eval(); }, absl::InfiniteFuture());
    mutex->Lock();
  }
}

}  // namespace fusion::simulation
