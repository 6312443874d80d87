// AtomicFile: a file that appears whole or not at all. Bytes go to a file without a name; Commit syncs it, names it and
// renames it over the target. Without Commit, when it fails, or when the process is killed, nothing stays behind.
// On a file system without nameless files the temporary file is called .fusion-tmp-HOST-PID-N; those of processes that
// are gone are removed when the next file is created in the folder.
#ifndef FUSION_RUNTIME_BASE_ATOMIC_FILE_H_
#define FUSION_RUNTIME_BASE_ATOMIC_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

// One thread at a time. A full disk is RESOURCE_EXHAUSTED.
class AtomicFile {
 public:
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  absl::Status Append(absl::string_view bytes);
  absl::Status WriteAt(int64_t offset, absl::string_view bytes);  // within what has been appended
  int64_t size_bytes() const { return size_bytes_; }
  // Once, last. Not `durable`: a crash of the machine may lose it; for files that are read back and removed.
  absl::Status Commit(bool durable = true);

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  absl::Status Write(int64_t offset, absl::string_view bytes);
  absl::Status Name();

  std::string path_;
  std::string temporary_;  // empty: no name yet
  int fd_;
  int64_t size_bytes_ = 0;
  int64_t begun_bytes_ = 0;  // that the disk was told to write
};

// The whole of `bytes` through an AtomicFile.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_ATOMIC_FILE_H_
