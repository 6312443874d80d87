#include "runtime/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"

namespace fusion {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not hang us
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open '", path, "'"));
  struct stat info;
  absl::Status status;
  void* data = MAP_FAILED;
  if (fstat(fd, &info) != 0) {
    status = ErrnoStatus(errno, absl::StrCat("cannot stat '", path, "'"));
  } else if (!S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file"));
  } else if (info.st_size == 0) {
    status = absl::InvalidArgumentError(absl::StrCat("'", path, "' is empty"));
  } else {
    data = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) status = ErrnoStatus(errno, absl::StrCat("cannot map '", path, "'"));
  }
  close(fd);
  if (!status.ok()) return status;
  return std::shared_ptr<const MappedFile>(new MappedFile(data, info.st_size));
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::FromBytes(absl::string_view bytes) {
  if (bytes.empty()) return absl::InvalidArgumentError("no bytes to map");
  void* data = mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("cannot allocate ", bytes.size(), " bytes"));
  std::memcpy(data, bytes.data(), bytes.size());
  mprotect(data, bytes.size(), PROT_READ);
  return std::shared_ptr<const MappedFile>(new MappedFile(data, bytes.size()));
}

MappedFile::~MappedFile() { munmap(const_cast<void*>(data_), size_bytes_); }

}  // namespace fusion
