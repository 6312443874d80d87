#include "server/stream_places.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/retry/retry_info.h"

namespace fusion {
namespace {

constexpr absl::Duration kPause = absl::Seconds(1);  // who was refused tries again after

}  // namespace

StreamPlaces::StreamPlaces(int places, int places_of_one, absl::Duration longest_pause, SteadyClock clock)
    : most_(static_cast<size_t>(places)),
      most_of_one_(static_cast<size_t>(places_of_one)),
      longest_pause_(longest_pause),
      clock_(std::move(clock)),
      thread_([this] { Loop(); }) {}

StreamPlaces::~StreamPlaces() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    stop_wanted_.SignalAll();
  }
  thread_.join();
}

absl::StatusOr<std::unique_ptr<StreamPlaces::Place>> StreamPlaces::Take(const std::string& owner,
                                                                        std::function<void()> cancel) {
  absl::MutexLock lock(&mutex_);
  size_t& of_owner = taken_by_[owner];
  if (taken_.size() >= most_ || of_owner >= most_of_one_) {
    const std::string words =
        taken_.size() >= most_
            ? absl::StrCat(most_, " streams are open, the most that this server takes")
            : absl::StrCat("caller '", owner, "' has ", of_owner, " streams open, as many as one may");
    if (of_owner == 0) taken_by_.erase(owner);
    return RetryAfter(absl::ResourceExhaustedError(absl::StrCat(words, "; try again")), kPause);
  }
  std::unique_ptr<Place> place(new Place(this, owner, std::move(cancel)));
  place->progress_at_ = clock_();
  taken_.insert(place.get());
  ++of_owner;
  return place;
}

StreamPlaces::Place::~Place() {
  absl::MutexLock lock(&places_->mutex_);
  places_->taken_.erase(this);
  const auto found = places_->taken_by_.find(owner_);
  if (--found->second == 0) places_->taken_by_.erase(found);
}

void StreamPlaces::Place::Progress() {
  absl::MutexLock lock(&places_->mutex_);
  progress_at_ = places_->clock_();
}

void StreamPlaces::CancelSlow() {
  absl::MutexLock lock(&mutex_);
  for (Place* place : taken_) {
    if (clock_() - place->progress_at_ > longest_pause_) place->cancel_();
  }
}

void StreamPlaces::Loop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (!stopping_) stop_wanted_.WaitFor(&mutex_, absl::Seconds(1));
      if (stopping_) return;
    }
    CancelSlow();
  }
}

}  // namespace fusion
