#include "server/compile_process/faults.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fusion {
namespace {

constexpr size_t kFaultBytes = size_t{30} << 30;
constexpr int kExitHarmDone = 4;

bool Connects(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool StartsAProcess(bool program) {
  const pid_t child = fork();
  if (child == 0) {
    if (program) execl("/bin/true", "true", static_cast<char*>(nullptr));
    _exit(program ? 126 : 0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool DoesHarm(const std::string& kind) {
  const std::vector<std::string> parts = absl::StrSplit(kind, absl::MaxSplits('=', 1));
  if (parts.size() == 2 && parts[0] == "connect") return Connects(parts[1]);
  if (parts.size() == 2 && parts[0] == "read") return open(parts[1].c_str(), O_RDONLY | O_CLOEXEC) >= 0;
  if (parts.size() == 2 && parts[0] == "write") {
    return open(parts[1].c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
  }
  if (kind == "fork" || kind == "program") return StartsAProcess(kind == "program");
  return kind == "kill" && kill(getppid(), 0) == 0;
}

}  // namespace

absl::StatusOr<Fault> ParseFault(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 3) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not MODEL:STAGE:KIND"));
  return Fault{parts[0], parts[1], parts[2]};
}

void Commit(const std::string& kind) {
  if (kind == "abort") abort();
  if (kind == "exit") _exit(3);
  if (kind == "memory" || kind == "leak") {
    const size_t block_bytes = kind == "leak" ? size_t{64} << 20 : kFaultBytes;
    for (size_t taken = 0; taken < kFaultBytes; taken += block_bytes) {
      volatile char* block = new char[block_bytes];
      for (size_t i = 0; i < block_bytes; i += 4096) block[i] = 1;
    }
  }
  if (kind == "memory" || kind == "leak" || kind == "loop") {
    for (volatile bool forever = true; forever;) {
    }
  }
  if (!DoesHarm(kind)) return;
  std::fprintf(stderr, "HARM DONE\n");
  _exit(kExitHarmDone);
}

}  // namespace fusion
