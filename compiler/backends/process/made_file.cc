#include "compiler/backends/process/made_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"

namespace fusion {

absl::StatusOr<std::string> ReadMadeFile(const std::string& path, int64_t most_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return absl::NotFoundError(absl::StrCat("there is no file ", path));
  if (fd < 0 && (errno == ELOOP || errno == ENXIO)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no plain file"));
  }
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot look at ", path));
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no plain file with one name"));
  }
  if (info.st_size > most_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", info.st_size, " bytes; at most ", most_bytes, " are read"));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace fusion
