#include "runtime/devices/cpu/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/fifo_semaphore.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/spin.h"
#include "runtime/devices/cpu/thread_placement.h"

namespace fusion {
namespace {

using Clock = std::chrono::steady_clock;

// How long threads look for work after a run, before they sleep: the next run may follow at once or never.
constexpr std::chrono::microseconds kSpinAfterRun(100);

// A thread that was woken this long ago and has not begun a task has no processor.
constexpr std::chrono::microseconds kWakes(50);

// Lets one thread sleep until another has changed an atomic word. The order is: the sleeper says that it sleeps, then
// looks at the word; the other one changes the word, then looks whether somebody sleeps. All four are sequentially
// consistent, so at least one of them sees the other.
class Bed {
 public:
  template <typename Done>
  void SleepUntil(const Done& done) {
    std::unique_lock<std::mutex> lock(mutex_);
    asleep_.store(true);
    wake_.wait(lock, done);
    asleep_.store(false);
  }
  void Wake() {
    if (!asleep_.load()) return;
    // The sleeper holds the mutex but while it waits: it cannot miss this between its look and its sleep.
    const std::lock_guard<std::mutex> lock(mutex_);
    wake_.notify_one();
  }

 private:
  std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace

int UsableCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// A thread and its mailbox. Whoever has taken the worker writes `task`, `context` and `index` and then posts them; the
// worker reads them once it has begun, and nothing of the task after it has ended. Work not yet begun can be revoked.
struct alignas(64) ThreadPool::Worker {
  enum class Mail : int { kNone, kPosted, kBegun };

  ThreadTeam::Task task = nullptr;  // null: the thread ends
  void* context = nullptr;
  int index = 0;
  std::atomic<Mail> mail{Mail::kNone};
  std::atomic<bool> in_team{false};
  std::atomic<int> holder_cpu{-1};  // where the holder was when it took the worker or posted the last task
  bool spins = false;               // constant
  Bed bed;                          // the worker's
  Bed waiter;                       // of who waits for the end of a task

  std::atomic<pid_t> tid{0};  // 0 until the thread runs
  // The holder's: when the worker first missed a task, if it has missed all since.
  std::optional<Clock::time_point> missed;
  std::thread thread;

  void Main() {
    tid.store(gettid());
    const auto has_mail = [&] { return mail.load() == Mail::kPosted; };
    for (;;) {
      while (!has_mail()) {
        if (spins && Spin(has_mail, [&] { return in_team.load() ? kSpinInRun : kSpinAfterRun; })) break;
        // A team that takes the worker while it sleeps wakes it, so that it is awake when the first task comes.
        const bool was_in_team = in_team.load();
        bed.SleepUntil([&] { return has_mail() || (in_team.load() && !was_in_team); });
        LeaveHoldersCpu();
      }
      Mail posted = Mail::kPosted;
      if (!mail.compare_exchange_strong(posted, Mail::kBegun)) continue;
      if (task == nullptr) return;
      LeaveHoldersCpu();
      task(context, index);
      mail.store(Mail::kNone);
      waiter.Wake();
    }
  }
  void Post(ThreadTeam::Task new_task, void* new_context, int new_index) {
    task = new_task;
    context = new_context;
    index = new_index;
    holder_cpu.store(CurrentCpu(), std::memory_order_relaxed);
    mail.store(Mail::kPosted);
    bed.Wake();
  }
  bool Revoke() {
    Mail posted = Mail::kPosted;
    return mail.compare_exchange_strong(posted, Mail::kNone);
  }
  // A worker that runs on its holder's processor keeps the holder from running: it would do its own part first, then look
  // for more, and only then let the holder begin.
  void LeaveHoldersCpu() {
    if (spins && holder_cpu.load(std::memory_order_relaxed) == CurrentCpu()) MoveOffThisCpu(tid.load());
  }
  // The holder calls this when the worker has not begun a task by its end. The worker may wait for the holder's processor.
  void Missed() {
    const Clock::time_point now = Clock::now();
    if (!missed.has_value()) missed = now;
    if (now - *missed < kWakes || tid.load() == 0) return;
    MoveOffThisCpu(tid.load());
    missed = now;
  }
};

struct ThreadPool::State {
  explicit State(int threads, bool is_fixed) : fixed(is_fixed), size(threads), seats(threads) {}

  const bool fixed;
  std::mutex mutex;
  int size;           // under mutex: how many threads run at once, callers included
  int reserved = 0;   // under mutex: workers that all teams ever made would take if they ran at once
  std::vector<std::unique_ptr<Worker>> workers;  // under mutex
  std::vector<Worker*> idle;                     // under mutex: by number, the lowest last
  // `size` of them. A team takes as many as it has threads. Each holder leaves one worker untouched (it brings a thread
  // of its own), and there are workers for all teams or for all seats but one, so whoever has seats finds workers.
  FifoSemaphore seats;
};

ThreadPool::ThreadPool(std::unique_ptr<State> state) : state_(std::move(state)) {}

ThreadPool::~ThreadPool() {
  for (const std::unique_ptr<Worker>& worker : state_->workers) worker->Post(nullptr, nullptr, 0);
  for (const std::unique_ptr<Worker>& worker : state_->workers) worker->thread.join();
}

absl::StatusOr<std::shared_ptr<ThreadPool>> ThreadPool::Create(int threads) {
  if (threads < 1 || threads > 1024) {
    return absl::InvalidArgumentError(absl::StrCat("a pool has 1 to 1024 threads, not ", threads));
  }
  std::shared_ptr<ThreadPool> pool(new ThreadPool(std::make_unique<State>(threads, /*is_fixed=*/true)));
  RETURN_IF_ERROR(pool->Reserve(threads));
  return pool;
}

std::shared_ptr<ThreadPool> ThreadPool::OfProcess() {
  // The one state of the process: sessions that know nothing of each other share its processors.
  static std::mutex mutex;
  static std::weak_ptr<ThreadPool> pool;
  static pid_t owner = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<ThreadPool> existing = pool.lock();
  // Threads do not survive a fork: sessions that are made after it need others.
  if (existing != nullptr && owner == getpid()) return existing;
  owner = getpid();
  std::shared_ptr<ThreadPool> created(new ThreadPool(std::make_unique<State>(UsableCpus(), /*is_fixed=*/false)));
  pool = created;
  return created;
}

int ThreadPool::threads() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->size;
}

absl::Status ThreadPool::Reserve(int threads) {
  State& s = *state_;
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (threads > s.size && s.fixed) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pool has ", s.size, " threads, a session cannot have ", threads));
  }
  // A team may want more threads than there are processors; other teams then find more seats as well.
  const int size = std::max(s.size, threads);
  const int reserved = std::min(s.reserved + threads - 1, size - 1);
  while (static_cast<int>(s.workers.size()) < reserved) {
    auto worker = std::make_unique<Worker>();
    worker->spins = static_cast<int>(s.workers.size()) + 1 < UsableCpus();
    try {
      worker->thread = std::thread([w = worker.get()] { w->Main(); });
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot start the kernel threads: ", error.what()));
    }
    s.idle.insert(s.idle.begin(), worker.get());
    s.workers.push_back(std::move(worker));
  }
  s.reserved = reserved;
  s.seats.Release(size - s.size);
  s.size = size;
  return absl::OkStatus();
}

ThreadTeam::ThreadTeam(std::shared_ptr<ThreadPool> pool, int size)
    : pool_(std::move(pool)), size_(size), spins_(size <= UsableCpus()) {
  workers_.reserve(static_cast<size_t>(size) - 1);
}

absl::StatusOr<std::unique_ptr<ThreadTeam>> ThreadTeam::Create(std::shared_ptr<ThreadPool> pool, int threads) {
  RETURN_IF_ERROR(pool->Reserve(threads));
  return std::unique_ptr<ThreadTeam>(new ThreadTeam(std::move(pool), threads));
}

void ThreadTeam::Enter() {
  entered_ = true;
  if (size_ == 1) return;
  ThreadPool::State& s = *pool_->state_;
  s.seats.Acquire(size_);
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    for (int i = 1; i < size_; ++i) {
      workers_.push_back(s.idle.back());
      s.idle.pop_back();
    }
  }
  for (ThreadPool::Worker* worker : workers_) {
    worker->missed.reset();
    worker->holder_cpu.store(CurrentCpu(), std::memory_order_relaxed);
    worker->in_team.store(true);
    worker->bed.Wake();
  }
}

void ThreadTeam::Leave() {
  entered_ = false;
  if (size_ == 1) return;
  ThreadPool::State& s = *pool_->state_;
  for (ThreadPool::Worker* worker : workers_) worker->in_team.store(false);
  {
    // In the order in which they were: a run that finds them free gets the same ones again, with their caches.
    const std::lock_guard<std::mutex> lock(s.mutex);
    while (!workers_.empty()) {
      s.idle.push_back(workers_.back());
      workers_.pop_back();
    }
  }
  s.seats.Release(size_);
}

void ThreadTeam::Run(Task task, void* context) { RunAndWait(task, context, /*revokes=*/false); }

void ThreadTeam::RunWhoComes(Task task, void* context) { RunAndWait(task, context, /*revokes=*/true); }

void ThreadTeam::NoteMissing() {
  using Mail = ThreadPool::Worker::Mail;
  for (ThreadPool::Worker* worker : workers_) {
    if (worker->spins && worker->mail.load(std::memory_order_relaxed) == Mail::kPosted) worker->Missed();
  }
}

void ThreadTeam::RunAndWait(Task task, void* context, bool revokes) {
  using Mail = ThreadPool::Worker::Mail;
  for (int i = 1; i < size_; ++i) workers_[i - 1]->Post(task, context, i);
  task(context, 0);
  for (ThreadPool::Worker* worker : workers_) {
    const auto ended = [&] { return worker->mail.load() == Mail::kNone; };
    const bool has_ended = ended();  // a look before Revoke's exchange, which takes the line from the worker
    if (!has_ended && revokes && worker->Revoke()) {
      if (worker->spins) worker->Missed();
      continue;
    }
    worker->missed.reset();
    if (has_ended) continue;
    if (spins_ && Spin(ended, [] { return kSpinInRun; })) continue;
    worker->waiter.SleepUntil(ended);
  }
}

}  // namespace fusion
