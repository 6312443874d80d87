// AtomicFile: a file that appears whole or not at all. Bytes go to a file without a name; Commit syncs it, names it and
// renames it over the target. Nothing stays behind if Commit is not called or fails, or if the process is killed.
// On a file system without nameless files the temporary file is called .fusion-tmp-HOST-PID-N. Creating the next file
// in a folder removes the temporary files of processes that no longer run.
#ifndef FUSION_RUNTIME_BASE_ATOMIC_FILE_H_
#define FUSION_RUNTIME_BASE_ATOMIC_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

// One thread at a time may use it. A full disk is RESOURCE_EXHAUSTED.
class AtomicFile {
 public:
  // `mode` is what the process's umask leaves of it: 0600 for a secret.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(const std::string& path, unsigned mode = 0666);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  absl::Status Append(absl::string_view bytes);
  absl::Status WriteAt(int64_t offset, absl::string_view bytes);  // within what has been appended
  int64_t size_bytes() const { return size_bytes_; }
  // Call it once, as the last call. With durable = false a crash of the machine may lose the file; that suits files
  // that are read back and removed.
  absl::Status Commit(bool durable = true);

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  absl::Status Write(int64_t offset, absl::string_view bytes);
  absl::Status Name();

  std::string path_;
  std::string temporary_;  // empty: the file has no name yet
  int fd_;
  int64_t size_bytes_ = 0;
  int64_t begun_bytes_ = 0;  // the bytes that the disk was told to write
};

// Writes all of `bytes` through an AtomicFile.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes, unsigned mode = 0666);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_ATOMIC_FILE_H_
