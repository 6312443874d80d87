// UploadBatch: installs the blobs of a stream while the next ones are received. Syncing a chunk takes as long as
// receiving it, and chunks that are synced together cost little more than one.
#ifndef FUSION_SERVER_ARTIFACTS_UPLOAD_BATCH_H_
#define FUSION_SERVER_ARTIFACTS_UPLOAD_BATCH_H_

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/artifacts/artifact_store.h"

namespace fusion {

// One thread may use it. Only `Finish` tells that an upload is durable: `Add` returns before. A blob has no row until
// it is, so that other streams do not find it either. Destroying a batch installs what was added, as `Finish` does.
class UploadBatch {
 public:
  // `artifacts` must outlive the result. The blobs are this tenant's.
  explicit UploadBatch(ArtifactStore* artifacts, std::string tenant = "")
      : artifacts_(artifacts), tenant_(std::move(tenant)) {}
  ~UploadBatch();

  // Takes a sealed upload, and waits while too many others are not installed yet. Returns the error of an earlier one.
  absl::Status Add(std::unique_ptr<ArtifactStore::Upload> upload);
  // Returns when all uploads are durable, or the first error. Nothing may be added afterwards.
  absl::Status Finish();

 private:
  void Loop();
  void End();

  ArtifactStore* const artifacts_;
  const std::string tenant_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<ArtifactStore::Upload>> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // runs from the first Add
};

}  // namespace fusion

#endif  // FUSION_SERVER_ARTIFACTS_UPLOAD_BATCH_H_
