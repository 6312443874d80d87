// PayloadFiles: the payloads of tasks that are not done, one file for each digest. Nothing here is synced, because the
// job that waits for a task can make its payload again: a file survives the end of this process, and after a power cut
// it may be missing, short or full of zeros. Whoever reads one holds it to its digest. Thread-safe.
#ifndef FUSION_SERVER_ARTIFACTS_PAYLOAD_FILES_H_
#define FUSION_SERVER_ARTIFACTS_PAYLOAD_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace fusion {

// Writes a file of a few hundred kilobytes, and removes it.
absl::Status TryToWriteBelow(const std::string& folder);

class PayloadFiles {
 public:
  // Creates `folder` if needed. The files that are in it can be read, and have no user yet.
  static absl::StatusOr<std::unique_ptr<PayloadFiles>> Open(const std::string& folder);

  // Calls this when a file cannot be written. Before the first call of another method.
  void OnFailedWrite(std::function<void(const absl::Status&)> on_failed) { on_failed_write_ = std::move(on_failed); }
  // Writes a file that nobody wants, and removes it.
  absl::Status TryToWrite() const;

  // Writes the bytes, also over a file that is there: it may be damaged. Adds one user and returns the digest.
  absl::StatusOr<std::string> Put(absl::string_view bytes);
  // Takes one user away. The last one takes the file along.
  void Drop(const std::string& digest);
  // After a restart: each element is one user of a file that is there. Files without a user are removed.
  void KeepOnly(const std::vector<std::string>& digests);

  struct Found {
    std::string path;
    int64_t size_bytes = 0;  // as it was put
  };
  std::optional<Found> Find(const std::string& digest) const;

 private:
  struct File {
    int64_t size_bytes = 0;
    int users = 0;
  };
  explicit PayloadFiles(std::string folder) : folder_(std::move(folder)) {}
  std::string PathOf(const std::string& digest) const;
  absl::StatusOr<std::string> Write(absl::string_view bytes);

  const std::string folder_;
  std::function<void(const absl::Status&)> on_failed_write_;  // may be empty
  mutable absl::Mutex mutex_;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);  // by digest
};

}  // namespace fusion

#endif  // FUSION_SERVER_ARTIFACTS_PAYLOAD_FILES_H_
