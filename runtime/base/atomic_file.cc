#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"

namespace fusion {

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

namespace {

constexpr int kMaxAttempts = 1000;
// Starts writing back to disk after this many appended bytes. A smaller file is first written back by Commit.
constexpr int64_t kWriteBackBytes = 16 << 20;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// The part of a temporary file's name before the process id and the number. It contains the host name because folders
// are shared over networks and process ids are not.
std::string TemporaryPrefix() {
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  return absl::StrCat(".fusion-tmp-", host, "-");
}

std::string TemporaryName(const std::string& path, int attempt) {
  return absl::StrCat(FolderOf(path), "/", TemporaryPrefix(), getpid(), "-", attempt);
}

void RemoveOrphans(const std::string& folder) {
  std::error_code error;
  const std::string prefix = TemporaryPrefix();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, prefix)) continue;
    const int pid = std::atoi(name.c_str() + prefix.size());
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) unlink(entry.path().c_str());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(const std::string& path, unsigned mode) {
  if (path.empty() || path.back() == '/') {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' does not name a file"));
  }
  const std::string folder = FolderOf(path);
  RemoveOrphans(folder);
  int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (fd >= 0) return std::unique_ptr<AtomicFile>(new AtomicFile(path, "", fd));
  for (int attempt = 0;; ++attempt) {
    std::string temporary = TemporaryName(path, attempt);
    fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) return std::unique_ptr<AtomicFile>(new AtomicFile(path, std::move(temporary), fd));
    if (errno != EEXIST || attempt == kMaxAttempts) {
      return ErrnoStatus(errno, absl::StrCat("cannot create '", path, "'"));
    }
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

// Links the nameless file to a temporary name: a link never replaces a file, so the result is then renamed over the
// target.
absl::Status AtomicFile::Name() {
  const std::string self = absl::StrCat("/proc/self/fd/", fd_);
  for (int attempt = 0;; ++attempt) {
    const std::string temporary = TemporaryName(path_, attempt);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = temporary;
      return absl::OkStatus();
    }
    if (errno != EEXIST || attempt == kMaxAttempts) {
      return ErrnoStatus(errno, absl::StrCat("cannot create '", path_, "'"));
    }
  }
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
  if (size_bytes_ - begun_bytes_ >= kWriteBackBytes) {
    // Only a hint: the disk writes while the caller produces the rest, so that Commit waits less.
    sync_file_range(fd_, begun_bytes_, size_bytes_ - begun_bytes_, SYNC_FILE_RANGE_WRITE);
    begun_bytes_ = size_bytes_;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::WriteAt(int64_t offset, absl::string_view bytes) {
  if (offset < 0 || offset + static_cast<int64_t>(bytes.size()) > size_bytes_) {
    return absl::InternalError("AtomicFile::WriteAt past what was appended");
  }
  return Write(offset, bytes);
}

absl::Status AtomicFile::Commit(bool durable) {
  if (durable && fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync '", path_, "'"));
  if (temporary_.empty()) RETURN_IF_ERROR(Name());
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot rename a finished file to '", path_, "'"));
  }
  close(fd_);
  fd_ = -1;
  if (!durable) return absl::OkStatus();
  // A rename is durable only once its folder is synced. A folder that cannot be synced is not an error.
  const int folder_fd = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    fsync(folder_fd);
    close(folder_fd);
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes, unsigned mode) {
  ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path, mode));
  RETURN_IF_ERROR(file->Append(bytes));
  return file->Commit();
}

}  // namespace fusion
