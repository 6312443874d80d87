#include "compiler/backends/process/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"

extern char** environ;

namespace fusion {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
  ~Pipe() {
    CloseWrite();
    if (read_end >= 0) close(read_end);
  }
  void CloseWrite() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

// Appends what is readable; returns false at end of file.
bool Drain(int fd, size_t limit, std::string* text) {
  char buffer[16384];
  ssize_t n = read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  if (text->size() < limit) text->append(buffer, std::min<size_t>(n, limit - text->size()));
  return true;
}

absl::Duration CpuTime(pid_t pid) {
  clockid_t clock;
  timespec used;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return absl::ZeroDuration();
  return absl::DurationFromTimespec(used);
}

}  // namespace

std::string ChildResult::Describe() const {
  if (cancelled) return "was cancelled";
  if (timed_out) return absl::StrFormat("did not finish within %.0f s (%.0f s of CPU time)", seconds, cpu_seconds);
  if (signal != 0) return absl::StrFormat("was ended by signal %d (%s)", signal, strsignal(signal));
  return absl::StrFormat("exited with %d", exit_code);
}

absl::StatusOr<pid_t> StartChild(const std::vector<std::string>& argv, const StartOptions& options) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  auto free_attributes = absl::MakeCleanup([&] {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  });
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (options.stdout_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.stdout_fd, STDOUT_FILENO);
  if (options.stderr_fd >= 0) posix_spawn_file_actions_adddup2(&actions, options.stderr_fd, STDERR_FILENO);
  if (options.inherited_fd >= 0) {
    posix_spawn_file_actions_adddup2(&actions, options.inherited_fd, kInheritedFd);
    posix_spawn_file_actions_addclosefrom_np(&actions, kInheritedFd + 1);
  }
  if (!options.working_directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options.working_directory.c_str());
  }
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int s : {SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGHUP}) sigaddset(&defaults, s);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
  };
  std::vector<char*> args = pointers(argv), variables;
  if (options.environment.has_value()) variables = pointers(*options.environment);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, args[0], &actions, &attributes, args.data(),
                                 options.environment.has_value() ? variables.data() : environ);
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat("program '", argv[0], "' was not found"));
  if (error != 0) return absl::InternalError(absl::StrCat("cannot start '", argv[0], "': ", strerror(error)));
  return pid;
}

absl::StatusOr<ChildResult> RunChild(const std::vector<std::string>& argv, const ChildOptions& options) {
  Pipe out, err;
  if (out.read_end < 0 || err.read_end < 0) return absl::ResourceExhaustedError("no file descriptors left for a pipe");
  ASSIGN_OR_RETURN(const pid_t pid, StartChild(argv, {options.working_directory, out.write_end, err.write_end}));
  out.CloseWrite();
  err.CloseWrite();

  ChildResult result;
  const absl::Time start = SteadyNow();
  bool out_open = true, err_open = true, reaped = false, killed = false;
  int wait_status = 0;
  struct rusage usage = {};
  absl::Time kill_time = absl::InfiniteFuture();
  while (!reaped || out_open || err_open) {
    struct pollfd fds[2] = {{out_open ? out.read_end : -1, POLLIN, 0}, {err_open ? err.read_end : -1, POLLIN, 0}};
    poll(fds, 2, out_open || err_open ? 50 : 2);
    if (fds[0].revents != 0) out_open = Drain(out.read_end, options.max_output_bytes, &result.stdout_text);
    if (fds[1].revents != 0) err_open = Drain(err.read_end, options.max_output_bytes, &result.stderr_text);
    if (!reaped && wait4(pid, &wait_status, WNOHANG, &usage) == pid) reaped = true;
    const absl::Time now = SteadyNow();
    if (!killed && !reaped) {
      result.cancelled = options.cancelled && options.cancelled();
      const absl::Duration used = CpuTime(pid);
      result.cpu_seconds = std::max(result.cpu_seconds, absl::ToDoubleSeconds(used));
      result.timed_out = now - start > options.deadline || used > options.cpu_limit;
      if (result.cancelled || result.timed_out) {
        kill(-pid, SIGKILL);
        killed = true;
        kill_time = now;
      }
    }
    // A grandchild may hold the pipes open after the child has gone; it is killed with the process group.
    if (reaped && (out_open || err_open)) {
      if (kill_time == absl::InfiniteFuture()) kill_time = now;
      if (now - kill_time > absl::Milliseconds(200)) {
        kill(-pid, SIGKILL);
        break;
      }
    }
  }
  result.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  if (WIFEXITED(wait_status)) result.exit_code = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) result.signal = WTERMSIG(wait_status);
  if (result.signal == SIGXCPU) result.timed_out = true;
  const absl::Duration used = absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
  result.cpu_seconds = std::max(result.cpu_seconds, absl::ToDoubleSeconds(used));
  return result;
}

std::string FindOnPath(const std::vector<std::string>& names) {
  const char* path = getenv("PATH");
  std::vector<std::string> folders = absl::StrSplit(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path, ':');
  for (const std::string& name : names) {
    for (const std::string& folder : folders) {
      std::string candidate = absl::StrCat(folder.empty() ? "." : folder, "/", name);
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
  }
  return "";
}

std::string LastWords(absl::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return std::string(text);
  return absl::StrCat("…", text.substr(text.size() - most_bytes));
}

std::string FindBesideThisProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const std::string program = (self.parent_path() / name).string();
  return access(program.c_str(), X_OK) == 0 ? program : "";
}

}  // namespace fusion
