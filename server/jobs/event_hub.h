// EventHub: tells watchers that the store has new events of a job. It carries no data, so a slow watcher costs no
// memory: the watcher reads the store at its own pace.
#ifndef FUSION_SERVER_JOBS_EVENT_HUB_H_
#define FUSION_SERVER_JOBS_EVENT_HUB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace fusion {

class EventHub {
 public:
  // `wake` is called on the notifying thread while the hub is locked, so it must be short and must not call the hub.
  int64_t Subscribe(const std::string& job_id, std::function<void()> wake);
  // After this returns, the callback is not running and will not run.
  void Unsubscribe(int64_t token);
  void Notify(const std::string& job_id);
  // Wakes all watchers; from then on closed() is true.
  void Close();
  bool closed() const;

 private:
  struct Subscription {
    std::string job_id;
    std::function<void()> wake;
  };
  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_token_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int64_t, Subscription> subscriptions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_EVENT_HUB_H_
