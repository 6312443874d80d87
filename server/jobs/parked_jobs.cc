// The part of JobRunner that keeps jobs for devices that are not there. A thread asks for each device that is wished
// for, however many jobs wish for it.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/cost/target.h"
#include "server/jobs/job_runner.h"

namespace fusion {
namespace {

constexpr absl::Duration kPauseOfAWish = absl::Milliseconds(20), kShortestPause = absl::Milliseconds(100),
                         kLongestPause = absl::Seconds(2);

}  // namespace

std::string JobRunner::NoDeviceInWords(const DeviceWish& wish) const {
  return absl::StrCat("no worker for ", wish.InWords(), "; kinds attached: ", farm_->AttachedKinds());
}

bool JobRunner::Park(const std::string& job_id, WaitingJob waiting, const RunningJob& running) {
  bool others_are = false;
  {
    absl::MutexLock lock(&mutex_);
    others_are = parked_for_.count(waiting.wish) > 0;
  }
  if (!others_are) {
    const absl::StatusOr<std::optional<AttachedWorker>> device = KnownDevice(waiting.wish);
    if (!device.ok() || device->has_value()) return false;  // the job meets an error of the store itself
  }
  if (!std::exchange(waiting.told, true)) {
    AppendEvent(job_id, {"queued", 0, 0, NoDeviceInWords(waiting.wish)}, v1::QUEUED);
  }
  absl::MutexLock lock(&mutex_);
  if (stopping_ || running.cancelled) return false;  // it ends where others do
  if (running.turn.has_value()) waiting.turn = *running.turn;
  running_.erase(job_id);
  farm_->ForgetJob(job_id);
  farm_->CountAwaited(ParseTarget(waiting.wish.target).kind, 1);
  parked_time_.Look(options_.clock());
  waiting.until = absl::UnixEpoch() + parked_time_.passed() + waiting.for_device;
  next_parked_expiry_ = std::min(next_parked_expiry_, waiting.until);
  parked_for_[waiting.wish].insert(job_id);
  parked_[job_id] = std::move(waiting);
  parked_changed_.Signal();
  return true;
}

void JobRunner::ParkedLoop() {
  while (true) {
    std::vector<DeviceWish> wishes;
    std::vector<ExpiredJob> expired;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      const absl::Duration pause =
          parked_.empty() ? absl::Hours(1)
                          : std::clamp(kPauseOfAWish * static_cast<int64_t>(parked_for_.size()), kShortestPause,
                                       kLongestPause);
      options_.threads->WaitFor(&parked_changed_, &mutex_, pause);
      if (stopping_) return;
      parked_time_.Look(options_.clock());
      for (const auto& [wish, ids] : parked_for_) wishes.push_back(wish);
    }
    for (const DeviceWish& wish : wishes) {
      if (farm_->FindDevice(wish).has_value()) Unpark(wish);
    }
    {
      absl::MutexLock lock(&mutex_);
      expired = TakeExpiredParked();
    }
    for (const ExpiredJob& job : expired) Expire(job);
  }
}

void JobRunner::Unpark(const DeviceWish& wish) {
  absl::MutexLock lock(&mutex_);
  const auto found = parked_for_.find(wish);
  if (found == parked_for_.end()) return;
  for (const std::string& id : std::set<std::string>(found->second)) {
    WaitingJob waiting = parked_.at(id);
    (void)Dequeue(id);
    // In its old place: those that came later have not been before it.
    waiting.until = options_.clock() + waiting.for_place;
    PutIntoQueue(id, std::move(waiting));
  }
}

std::vector<JobRunner::ExpiredJob> JobRunner::TakeExpiredParked() {
  const absl::Time now = absl::UnixEpoch() + parked_time_.passed();
  std::vector<ExpiredJob> expired;
  if (now < next_parked_expiry_) return expired;
  next_parked_expiry_ = absl::InfiniteFuture();
  for (const auto& [id, waiting] : parked_) {
    if (waiting.until <= now) {
      expired.push_back({id, waiting, /*parked=*/true});
    } else {
      next_parked_expiry_ = std::min(next_parked_expiry_, waiting.until);
    }
  }
  for (const ExpiredJob& job : expired) (void)Dequeue(job.id);
  return expired;
}

}  // namespace fusion
