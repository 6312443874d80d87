#include "server/local_worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace fusion {

std::string WorkerBesideThisProgram() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return "";
  std::string program(path, static_cast<size_t>(length));
  program.replace(program.rfind('/') + 1, std::string::npos, "fusion-worker");
  return access(program.c_str(), X_OK) == 0 ? program : "";
}

LocalWorker::LocalWorker(std::string name, std::vector<std::string> argv)
    : name_(std::move(name)), argv_(std::move(argv)), thread_([this] { Supervise(); }) {}

LocalWorker::~LocalWorker() { Stop(absl::Seconds(2)); }

void LocalWorker::BeginStop() {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  stopping_ = true;
  if (pid_ > 0) kill(pid_, SIGTERM);
}

void LocalWorker::Stop(absl::Duration grace) {
  if (joined_) return;
  joined_ = true;
  BeginStop();
  {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](LocalWorker* self) ABSL_NO_THREAD_SAFETY_ANALYSIS { return self->pid_ == 0; }, this),
        grace);
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
  return !mutex_.AwaitWithTimeout(absl::Condition(&stopping_), duration);
}

void LocalWorker::Supervise() {
  constexpr absl::Duration kShortestPause = absl::Milliseconds(500), kLongestPause = absl::Seconds(30);
  std::vector<char*> argv;
  for (const std::string& argument : argv_) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  absl::Duration pause = kShortestPause;
  while (true) {
    const absl::Time start = absl::Now();
    pid_t child;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      child = fork();
      if (child == 0) {  // only async-signal-safe calls from here on
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        // A Ctrl-C in a terminal must reach only fusiond, which then stops its worker.
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) _exit(1);
        execv(argv[0], argv.data());
        _exit(127);
      }
      pid_ = std::max<pid_t>(child, 0);
      endings_.away = false;
    }
    int status = 0;
    if (child > 0) {
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
    }
    const std::string how = WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                                                : absl::StrCat("exit code ", WEXITSTATUS(status));
    {
      absl::MutexLock lock(&mutex_);
      pid_ = 0;
      if (stopping_) return;
      ++endings_.count;
      endings_.last = how;
      endings_.away = true;
    }
    if (absl::Now() - start > absl::Minutes(1)) pause = kShortestPause;
    std::fprintf(stderr, "fusiond: the local worker '%s' ended (%s); starting it again in %s\n", name_.c_str(),
                 how.c_str(), absl::FormatDuration(pause).c_str());
    if (!SleepUnlessStopped(pause)) return;
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace fusion
