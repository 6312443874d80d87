#include "server/local_worker.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "compiler/backends/process/child_process.h"
#include "runtime/base/steady_clock.h"

namespace fusion {

LocalWorker::LocalWorker(std::string name, std::vector<std::string> argv, Log log)
    : name_(std::move(name)), argv_(std::move(argv)), log_(std::move(log)), thread_([this] { Supervise(); }) {}

LocalWorker::~LocalWorker() { Stop(absl::Seconds(2)); }

void LocalWorker::BeginStop() {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  stopping_ = true;
  changed_.SignalAll();
  if (pid_ > 0) kill(pid_, SIGTERM);
}

void LocalWorker::Stop(absl::Duration grace) {
  if (joined_) return;
  joined_ = true;
  BeginStop();
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time until = SteadyNow() + grace;
    while (pid_ != 0 && SteadyNow() < until) changed_.WaitFor(&mutex_, until - SteadyNow());
    if (pid_ > 0) kill(pid_, SIGKILL);
  }
  thread_.join();
}

LocalWorker::Endings LocalWorker::endings() const {
  absl::MutexLock lock(&mutex_);
  return endings_;
}

bool LocalWorker::SleepUnlessStopped(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  const absl::Time until = SteadyNow() + duration;
  while (!stopping_ && SteadyNow() < until) changed_.WaitFor(&mutex_, until - SteadyNow());
  return !stopping_;
}

std::optional<std::string> LocalWorker::RunOnce() {
  std::string how;
  pid_t child = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return std::nullopt;
    std::vector<std::string> argv = argv_;
    argv.insert(argv.end(), {"--parent", absl::StrCat(getpid())});
    const absl::StatusOr<pid_t> started = StartChild(argv, {});
    if (started.ok()) {
      child = *started;
    } else {
      how = std::string(started.status().message());
    }
    pid_ = child;
    endings_.away = false;
  }
  if (child > 0) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    how = WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                              : absl::StrCat("exit code ", WEXITSTATUS(status));
  }
  absl::MutexLock lock(&mutex_);
  pid_ = 0;
  changed_.SignalAll();
  if (stopping_) return std::nullopt;
  ++endings_.count;
  endings_.last = how;
  endings_.away = true;
  return how;
}

// Linux ends the process with the thread that started it, so one thread starts it and waits.
void LocalWorker::Supervise() {
  constexpr absl::Duration kShortestPause = absl::Milliseconds(500), kLongestPause = absl::Seconds(30);
  absl::Duration pause = kShortestPause;
  while (true) {
    const absl::Time start = SteadyNow();
    const std::optional<std::string> how = RunOnce();
    if (!how.has_value()) return;
    if (SteadyNow() - start > absl::Minutes(1)) pause = kShortestPause;
    log_({LogLevel::kWarning,
          "the local worker ended",
          {{"name", name_}, {"how", *how}, {"starts_again_in", absl::FormatDuration(pause)}}});
    if (!SleepUnlessStopped(pause)) return;
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace fusion
