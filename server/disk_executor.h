// DiskExecutor: a few threads for work that may block on the disk, so that such work never runs on a thread of gRPC.
#ifndef FUSION_SERVER_DISK_EXECUTOR_H_
#define FUSION_SERVER_DISK_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace fusion {

class DiskExecutor {
 public:
  explicit DiskExecutor(int threads);
  // Runs the queued work, then joins.
  ~DiskExecutor();
  void Run(std::function<void()> work);

 private:
  void Loop();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_DISK_EXECUTOR_H_
