#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"

namespace fusion {

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(const std::string& path) {
  if (path.empty() || path.back() == '/') {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' does not name a file"));
  }
  // Exclusive creation with the ordinary mode, so that the process's umask decides who may read the result.
  for (int attempt = 0;; ++attempt) {
    std::string temporary = absl::StrCat(path, ".tmp-", getpid(), "-", attempt);
    const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return std::unique_ptr<AtomicFile>(new AtomicFile(path, std::move(temporary), fd));
    if (errno != EEXIST || attempt == 1000) return ErrnoStatus(errno, absl::StrCat("cannot create '", temporary, "'"));
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

absl::Status AtomicFile::Write(int64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("cannot write '", path_, "'"));
    bytes.remove_prefix(written);
    offset += written;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Append(absl::string_view bytes) {
  RETURN_IF_ERROR(Write(size_bytes_, bytes));
  size_bytes_ += bytes.size();
  return absl::OkStatus();
}

absl::Status AtomicFile::WriteAt(int64_t offset, absl::string_view bytes) {
  if (offset < 0 || offset + static_cast<int64_t>(bytes.size()) > size_bytes_) {
    return absl::InternalError("AtomicFile::WriteAt past what was appended");
  }
  return Write(offset, bytes);
}

absl::Status AtomicFile::Commit() {
  if (fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync '", path_, "'"));
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot rename '", temporary_, "' to '", path_, "'"));
  }
  close(fd_);
  fd_ = -1;
  // The rename itself is durable only once its folder is; a folder that cannot be synced is no reason to fail.
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
  const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    fsync(folder_fd);
    close(folder_fd);
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  RETURN_IF_ERROR(file->Append(bytes));
  return file->Commit();
}

}  // namespace fusion
