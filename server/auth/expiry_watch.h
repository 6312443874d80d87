// ExpiryWatch: ends the calls of tokens that expire while they last. A call looks at its token when it begins, and a
// stream may go on for hours.
#ifndef FUSION_SERVER_AUTH_EXPIRY_WATCH_H_
#define FUSION_SERVER_AUTH_EXPIRY_WATCH_H_

#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/auth/guard.h"
#include "server/auth/tokens.h"

namespace fusion {

class ExpiryWatch {
 public:
  ExpiryWatch(TokenBook* tokens, Guard* guard)
      : thread_([this, tokens, guard] {
          while (!stop_.WaitForNotificationWithTimeout(absl::Seconds(2))) {
            for (const std::string& id : tokens->TakeExpired()) guard->EndCalls(id);
          }
        }) {}
  ~ExpiryWatch() {
    stop_.Notify();
    thread_.join();
  }
  ExpiryWatch(const ExpiryWatch&) = delete;
  ExpiryWatch& operator=(const ExpiryWatch&) = delete;

 private:
  absl::Notification stop_;
  std::thread thread_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_AUTH_EXPIRY_WATCH_H_
