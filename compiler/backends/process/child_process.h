// The one way to start a program. RunChild runs it to its end under a deadline: compilers, assemblers and measurements
// run this way. StartChild only starts it: the server's workers run this way. No shell is involved. The child leads a
// process group of its own, and RunChild kills the whole group at the deadline.
#ifndef FUSION_COMPILER_BACKENDS_PROCESS_CHILD_PROCESS_H_
#define FUSION_COMPILER_BACKENDS_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fusion {

struct ChildOptions {
  std::string working_directory;  // empty: inherited
  absl::Duration deadline = absl::Seconds(60);
  // Processor time of the child itself, however busy the machine is. A child that waits for another one (fusion-confine
  // --namespaces) limits that one by RLIMIT_CPU, and ends by SIGXCPU as it does.
  absl::Duration cpu_limit = absl::InfiniteDuration();
  size_t max_output_bytes = 256 << 10;  // of stdout and of stderr each; more is read and dropped
  std::function<bool()> cancelled;      // may be empty; polled about ten times a second
};

struct ChildResult {
  int exit_code = -1;      // -1 when a signal ended it
  int signal = 0;          // 0 when it exited
  bool timed_out = false;  // killed at the deadline, or at a limit of its CPU time
  bool cancelled = false;
  double seconds = 0;  // wall time
  double cpu_seconds =
      0;  // with that of children that it waited for; of one that was killed, up to 50 ms before its end
  std::string stdout_text;
  std::string stderr_text;

  bool ok() const { return exit_code == 0 && !timed_out && !cancelled; }
  // "exited with 1", "was ended by signal 11 (Segmentation fault)", "did not finish within 5 s (4 s of CPU time)".
  std::string Describe() const;
};

// `argv[0]` is a path, or a name that is looked up on PATH. Thread-safe. Fails with NOT_FOUND when the program does not
// exist; how the program ended is never an error of this call.
absl::StatusOr<ChildResult> RunChild(const std::vector<std::string>& argv, const ChildOptions& options);

struct StartOptions {
  std::string working_directory;       // empty: inherited
  int stdout_fd = -1, stderr_fd = -1;  // -1: those of this process
  // Becomes the program's descriptor kInheritedFd, and every later one is closed. -1: those of this process that are
  // not close-on-exec.
  int inherited_fd = -1;
  std::optional<std::vector<std::string>> environment = std::nullopt;  // "NAME=VALUE"; none: that of this process
};
inline constexpr int kInheritedFd = 3;

// Starts a program and returns its process id, which the caller must wait for. Its stdin is /dev/null, no signal is
// blocked, and SIGINT, SIGTERM, SIGQUIT, SIGPIPE and SIGHUP have their default effect; a Ctrl-C in a terminal does not
// reach it. Thread-safe. Fails with NOT_FOUND when the program does not exist.
absl::StatusOr<pid_t> StartChild(const std::vector<std::string>& argv, const StartOptions& options);

// The end of what a program said, for a message: "…" and the last bytes where there are more than `most_bytes`.
std::string LastWords(absl::string_view text, size_t most_bytes = 1500);

// The first of `names` that PATH holds, as an absolute path, or "".
std::string FindOnPath(const std::vector<std::string>& names);

// Returns the path of the program `name` in the folder of the running one, or "" if it is not there.
std::string FindBesideThisProgram(const std::string& name);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_PROCESS_CHILD_PROCESS_H_
