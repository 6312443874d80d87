#include "server/artifacts/payload_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/write_all.h"

namespace fusion {

absl::StatusOr<std::unique_ptr<PayloadFiles>> PayloadFiles::Open(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make ", folder));
  std::unique_ptr<PayloadFiles> files(new PayloadFiles(folder));
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    std::error_code gone;
    const auto size_bytes = static_cast<int64_t>(file->file_size(gone));
    absl::MutexLock lock(&files->mutex_);
    if (!gone) files->files_[file->path().filename().string()] = {size_bytes, 0};
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot list ", folder));
  return files;
}

std::string PayloadFiles::PathOf(const std::string& digest) const { return absl::StrCat(folder_, "/", digest); }

absl::Status TryToWriteBelow(const std::string& folder) {
  constexpr size_t kBytes = 256 << 10;
  std::string path = absl::StrCat(folder, "/part-XXXXXX");
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", path));
  const absl::Status written = WriteAll(fd, std::string(kBytes, 'x'), absl::StrCat("cannot write to ", folder));
  close(fd);
  unlink(path.c_str());
  return written;
}

absl::Status PayloadFiles::TryToWrite() const { return TryToWriteBelow(folder_); }

absl::StatusOr<std::string> PayloadFiles::Put(absl::string_view bytes) {
  absl::StatusOr<std::string> digest = Write(bytes);
  if (!digest.ok() && on_failed_write_) on_failed_write_(digest.status());
  return digest;
}

absl::StatusOr<std::string> PayloadFiles::Write(absl::string_view bytes) {
  const std::string digest = Sha256Hex(bytes);
  std::string part = absl::StrCat(folder_, "/part-XXXXXX");
  const int fd = mkostemp(part.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", part));
  absl::Status written = WriteAll(fd, bytes, "cannot write a task's payload");
  close(fd);
  absl::MutexLock lock(&mutex_);  // nobody drops the file between its name and its user
  if (written.ok() && rename(part.c_str(), PathOf(digest).c_str()) != 0) {
    written = ErrnoStatus(errno, absl::StrCat("cannot rename to ", PathOf(digest)));
  }
  if (!written.ok()) {
    unlink(part.c_str());
    return written;
  }
  File& file = files_[digest];
  file.size_bytes = static_cast<int64_t>(bytes.size());
  ++file.users;
  return digest;
}

void PayloadFiles::Drop(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  const auto file = files_.find(digest);
  if (file == files_.end() || --file->second.users > 0) return;
  unlink(PathOf(digest).c_str());
  files_.erase(file);
}

void PayloadFiles::KeepOnly(const std::vector<std::string>& digests) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& digest : digests) {
    if (const auto file = files_.find(digest); file != files_.end()) ++file->second.users;
  }
  for (auto file = files_.begin(); file != files_.end();) {
    if (file->second.users == 0) unlink(PathOf(file->first).c_str());
    file = file->second.users == 0 ? files_.erase(file) : std::next(file);
  }
}

std::optional<PayloadFiles::Found> PayloadFiles::Find(const std::string& digest) const {
  absl::MutexLock lock(&mutex_);
  const auto file = files_.find(digest);
  if (file == files_.end()) return std::nullopt;
  return Found{PathOf(digest), file->second.size_bytes};
}

}  // namespace fusion
