#include "runtime/base/write_all.h"

#include <unistd.h>

#include <cerrno>

#include "runtime/base/errno_status.h"

namespace fusion {

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& what) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, what);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace fusion
