#include "server/jobs/event_hub.h"

namespace fusion {

int64_t EventHub::Subscribe(const std::string& job_id, std::function<void()> wake) {
  absl::MutexLock lock(&mutex_);
  subscriptions_[next_token_] = {job_id, std::move(wake)};
  return next_token_++;
}

void EventHub::Unsubscribe(int64_t token) {
  absl::MutexLock lock(&mutex_);
  subscriptions_.erase(token);
}

void EventHub::Notify(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  for (auto& [token, subscription] : subscriptions_) {
    if (subscription.job_id == job_id) subscription.wake();
  }
}

void EventHub::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  for (auto& [token, subscription] : subscriptions_) subscription.wake();
}

bool EventHub::closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

}  // namespace fusion
