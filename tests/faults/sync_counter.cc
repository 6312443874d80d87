// A library to preload: each fsync and fdatasync of the process adds a line to $FUSION_SYNC_LOG, the name of the
// program and the path of the file, before it is done.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {

int Log(int fd, int call) {
  static const int log = [] {
    const char* path = getenv("FUSION_SYNC_LOG");
    return path == nullptr ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  }();
  char name[64], path[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(name, path, sizeof path);
  if (log >= 0 && length > 0) dprintf(log, "%s %.*s\n", program_invocation_short_name, static_cast<int>(length), path);
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

extern "C" int fsync(int fd) { return Log(fd, SYS_fsync); }
extern "C" int fdatasync(int fd) { return Log(fd, SYS_fdatasync); }
