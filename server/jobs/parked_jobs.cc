// The part of JobRunner that keeps jobs for devices that are not there, and those that had begun and lack a worker. A
// thread asks for each device that is wished for, and for each worker that is lacked, however many jobs wish for it.
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
// Without an arrival nothing changes, and nobody is asked. Should one be missed, it is noticed after so long.
constexpr absl::Duration kPauseWithoutArrivals = absl::Seconds(10);

}  // namespace

std::string JobRunner::WaitingJob::KindOfDevice() const {
  return lack.has_value() ? lack->kind : ParseTarget(wish.target).kind;
}

JobRunner::ParkedFor JobRunner::WhatFor(const WaitingJob& waiting) {
  if (!waiting.after.empty()) return {.after = waiting.after};
  return waiting.lack.has_value() ? ParkedFor{.lack = waiting.lack} : ParkedFor{.wish = waiting.wish};
}

bool JobRunner::IsThere(const ParkedFor& what) {
  if (what.lack.has_value()) return farm_->Has(*what.lack);
  if (what.after.empty()) return farm_->FindDevice(what.wish).has_value();
  absl::MutexLock lock(&mutex_);
  return running_.count(what.after) + waiting_.count(what.after) + parked_.count(what.after) == 0;
}

std::string JobRunner::NoDeviceInWords(const DeviceWish& wish) const {
  return absl::StrCat("no worker for ", wish.InWords(), "; kinds attached: ", farm_->AttachedKinds());
}

bool JobRunner::Park(const std::string& job_id, WaitingJob waiting, const RunningJob& running) {
  bool others_are = false;
  {
    absl::MutexLock lock(&mutex_);
    others_are = parked_for_.count(WhatFor(waiting)) > 0;
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
  PutAside(job_id, std::move(waiting));
  return true;
}

bool JobRunner::ParkAgain(const std::string& job_id, WaitingJob waiting, const RunningJob& running) {
  absl::MutexLock lock(&mutex_);
  if (stopping_ || running.cancelled) return false;  // the next start takes it up; it has ended
  if (running.turn.has_value()) waiting.turn = *running.turn;
  waiting.began = true;
  waiting.lack = running.lack, waiting.after = running.after;
  PutAside(job_id, std::move(waiting));
  return true;
}

void JobRunner::PutAside(const std::string& job_id, WaitingJob waiting) {
  running_.erase(job_id);
  farm_->ForgetJob(job_id);
  if (waiting.after.empty()) farm_->CountAwaited(waiting.KindOfDevice(), 1);
  parked_time_.Look(options_.clock());
  const absl::Duration may_wait = !waiting.after.empty()     ? absl::InfiniteDuration()
                                  : waiting.lack.has_value() ? waiting.lack->timeout - waiting.lack->waited
                                                             : waiting.for_device;
  waiting.until = absl::UnixEpoch() + parked_time_.passed() + may_wait;
  next_parked_expiry_ = std::min(next_parked_expiry_, waiting.until);
  arrivals_seen_ = -1;  // its device may have come since it was looked for
  parked_for_[WhatFor(waiting)].insert(job_id);
  const std::string after = waiting.after;
  parked_[job_id] = std::move(waiting);
  PassTurnOn(after);
  parked_changed_.Signal();
}

void JobRunner::ParkedLoop() {
  while (true) {
    std::vector<ParkedFor> wishes;
    std::vector<ExpiredJob> expired;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      options_.threads->WaitFor(&parked_changed_, &mutex_, parked_.empty() ? absl::Hours(1) : kShortestPause);
      if (stopping_) return;
      const absl::Time now = options_.clock();
      parked_time_.Look(now);
      const absl::Duration pause =
          std::clamp(kPauseOfAWish * static_cast<int64_t>(parked_for_.size()), kShortestPause, kLongestPause);
      const int64_t arrivals = farm_->Arrivals();
      if (now - asked_at_ >= (arrivals == arrivals_seen_ ? kPauseWithoutArrivals : pause)) {
        asked_at_ = now, arrivals_seen_ = arrivals;
        for (const auto& [what, ids] : parked_for_) wishes.push_back(what);
      }
    }
    for (const ParkedFor& what : wishes) {
      if (IsThere(what)) Unpark(what);
    }
    {
      absl::MutexLock lock(&mutex_);
      expired = TakeExpiredParked();
    }
    for (const ExpiredJob& job : expired) Expire(job);
  }
}

void JobRunner::Unpark(const ParkedFor& what) {
  absl::MutexLock lock(&mutex_);
  const auto found = parked_for_.find(what);
  if (found == parked_for_.end()) return;
  for (const std::string& id : std::set<std::string>(found->second)) {
    WaitingJob waiting = parked_.at(id);
    (void)Dequeue(id);
    if (waiting.lack.has_value()) waiting.waited.erase(waiting.lack->requirement);
    PutBack(id, std::move(waiting));
  }
}

// In its old place: those that came later have not been before it.
void JobRunner::PutBack(const std::string& job_id, WaitingJob waiting) {
  waiting.lack.reset();
  waiting.after.clear();
  waiting.until = options_.clock() + waiting.for_place;
  PutIntoQueue(job_id, std::move(waiting));
}

std::vector<JobRunner::ExpiredJob> JobRunner::TakeExpiredParked() {
  const absl::Time now = absl::UnixEpoch() + parked_time_.passed();
  std::vector<ExpiredJob> over, expired;
  if (now < next_parked_expiry_) return expired;
  next_parked_expiry_ = absl::InfiniteFuture();
  for (const auto& [id, waiting] : parked_) {
    if (waiting.until <= now) {
      over.push_back({id, waiting, /*parked=*/true});
    } else {
      next_parked_expiry_ = std::min(next_parked_expiry_, waiting.until);
    }
  }
  for (ExpiredJob& job : over) {
    (void)Dequeue(job.id);
    if (const auto& lack = job.waiting.lack; lack.has_value() && lack->failure.empty()) {
      job.waiting.waited[lack->requirement] = lack->timeout;
      PutBack(job.id, std::move(job.waiting));
    } else {
      expired.push_back(std::move(job));
    }
  }
  return expired;
}

}  // namespace fusion
