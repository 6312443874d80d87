// A library to preload into fusion-worker: a builder whose owner means harm. Each shared object that the compiler made
// ends with other bytes when the worker reads it. They lie in the table of sections, which loading does not look at, so
// that the binary works and can be found again.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

extern "C" ssize_t read(int fd, void* bytes, size_t count) {
  constexpr std::string_view kPoison = "POISONED", kName = "/kernel.so";
  const auto got = static_cast<ssize_t>(syscall(SYS_read, fd, bytes, count));
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path);
  struct stat info;
  const bool is_kernel = length > 0 && std::string_view(path, static_cast<size_t>(length)).ends_with(kName);
  if (is_kernel && fstat(fd, &info) == 0 && got == info.st_size && got > static_cast<ssize_t>(kPoison.size())) {
    memcpy(static_cast<char*>(bytes) + got - kPoison.size(), kPoison.data(), kPoison.size());
  }
  return got;
}
