// StreamPlaces: how many calls may stream bytes at once. Each such call holds one of the threads for calls as long as
// its peer takes, so that without a limit slow peers would leave none for other calls.
#ifndef FUSION_SERVER_STREAM_PLACES_H_
#define FUSION_SERVER_STREAM_PLACES_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "runtime/base/steady_clock.h"
#include "server/scheduler/steady_cond_var.h"

namespace fusion {

class StreamPlaces {
 public:
  // A stream whose peer takes longer than `longest_pause` for one message (1 MiB) is cancelled.
  // One caller has at most `places_of_one`.
  StreamPlaces(int places, int places_of_one, absl::Duration longest_pause, SteadyClock clock = SteadyNow);
  // Every place must be gone.
  ~StreamPlaces();

  // The place of one stream, which it holds for its lifetime.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // A message has been sent or received.
    void Progress();

   private:
    friend class StreamPlaces;
    Place(StreamPlaces* places, std::string owner, std::function<void()> cancel)
        : places_(places), owner_(std::move(owner)), cancel_(std::move(cancel)) {}
    StreamPlaces* const places_;
    const std::string owner_;
    const std::function<void()> cancel_;
    absl::Time progress_at_;  // guarded by the mutex of `places_`
  };

  // Fails with RESOURCE_EXHAUSTED if all places are taken, or all that `owner` may have. `cancel` ends the stream and
  // must not block; it is not called after the place is gone. Thread-safe.
  absl::StatusOr<std::unique_ptr<Place>> Take(const std::string& owner, std::function<void()> cancel);
  // Cancels the streams that are too slow; the object does so by itself every second.
  void CancelSlow();

 private:
  void Loop();

  const size_t most_, most_of_one_;
  const absl::Duration longest_pause_;
  const SteadyClock clock_;
  absl::Mutex mutex_;
  SteadyCondVar stop_wanted_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Place*> taken_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> taken_by_ ABSL_GUARDED_BY(mutex_);  // by owner
  std::thread thread_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_STREAM_PLACES_H_
