#include "worker/measure/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace fusion {

Turn Turn::Take(const std::string& file, const std::function<bool()>& cancelled) {
  if (file.empty()) return Turn(-1, false);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Turn(-1, false);
  // Polls, because a call that waits for the lock could not be cancelled.
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (cancelled && cancelled()) {
      close(fd);
      return Turn(-1, true);
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return Turn(fd, false);
}

Turn::~Turn() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace fusion
