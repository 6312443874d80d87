#include "server/artifacts/upload_batch.h"

#include <utility>

namespace fusion {
namespace {

// Bounds the open files of a stream, of which as many are being installed, and the bytes that a failure throws away.
constexpr size_t kMostWaiting = 16;

}  // namespace

UploadBatch::~UploadBatch() { End(); }

absl::Status UploadBatch::Add(std::unique_ptr<ArtifactStore::Upload> upload) {
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  absl::MutexLock lock(&mutex_);
  const auto has_room = [&] {
    mutex_.AssertHeld();
    return waiting_.size() < kMostWaiting || !status_.ok();
  };
  mutex_.Await(absl::Condition(&has_room));
  if (status_.ok()) waiting_.push_back(std::move(upload));
  return status_;
}

absl::Status UploadBatch::Finish() {
  End();
  absl::MutexLock lock(&mutex_);
  return status_;
}

void UploadBatch::End() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void UploadBatch::Loop() {
  for (;;) {
    std::vector<std::unique_ptr<ArtifactStore::Upload>> uploads;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_work = [&] {
        mutex_.AssertHeld();
        return !waiting_.empty() || ending_;
      };
      mutex_.Await(absl::Condition(&has_work));
      if (waiting_.empty()) return;
      uploads.swap(waiting_);
    }
    const absl::Status installed = artifacts_->Install(uploads, tenant_);
    if (installed.ok()) continue;
    absl::MutexLock lock(&mutex_);
    status_ = installed;
    waiting_.clear();
    return;
  }
}

}  // namespace fusion
