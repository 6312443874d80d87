#include "server/stream_places.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {

StreamPlaces::StreamPlaces(int places, absl::Duration longest_pause, SteadyClock clock)
    : most_(static_cast<size_t>(places)),
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

absl::StatusOr<std::unique_ptr<StreamPlaces::Place>> StreamPlaces::Take(std::function<void()> cancel) {
  std::unique_ptr<Place> place(new Place(this, std::move(cancel)));
  absl::MutexLock lock(&mutex_);
  if (taken_.size() >= most_) {
    place->progress_at_ = absl::InfiniteFuture();
    return absl::ResourceExhaustedError(
        absl::StrCat(most_, " streams are open, the most that this server takes; try again"));
  }
  place->progress_at_ = clock_();
  taken_.insert(place.get());
  return place;
}

StreamPlaces::Place::~Place() {
  absl::MutexLock lock(&places_->mutex_);
  places_->taken_.erase(this);
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
