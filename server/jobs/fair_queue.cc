#include "server/jobs/fair_queue.h"

#include <algorithm>

namespace fusion {

void FairQueue::Push(const std::string& owner, const std::string& job, int priority) {
  int64_t& next = next_turn_[owner];
  const int64_t turn = std::max(turn_, next);
  next = turn + 1;
  turns_[{turn, arrivals_}] = owner;
  waiting_[owner][arrivals_] = {job, priority};
  ++arrivals_;
}

void FairQueue::SetPriority(const std::string& job, int priority) {
  for (auto& [owner, jobs] : waiting_) {
    for (auto& [arrival, waiting] : jobs) {
      if (waiting.job == job) waiting.priority = priority;
    }
  }
}

// The first one that has been passed often enough, else the first of the highest priority.
FairQueue::Jobs::iterator FairQueue::NextOf(Jobs& jobs) {
  auto best = jobs.begin();
  for (auto it = jobs.begin(); it != jobs.end(); ++it) {
    if (it->second.passed >= kMostPassed) return it;
    if (it->second.priority > best->second.priority) best = it;
  }
  return best;
}

FairQueue::Entry FairQueue::Pop() {
  const auto first = turns_.begin();
  turn_ = first->first.first;
  const auto of_owner = waiting_.find(first->second);
  turns_.erase(first);
  Jobs& jobs = of_owner->second;
  const auto next = NextOf(jobs);
  for (auto earlier = jobs.begin(); earlier != next; ++earlier) ++earlier->second.passed;
  Entry entry{of_owner->first, std::move(next->second.job)};
  jobs.erase(next);
  if (jobs.empty()) waiting_.erase(of_owner);
  // Owners whose turns are over are as if they had never been here.
  std::erase_if(next_turn_, [&](const auto& one) { return one.second <= turn_; });
  return entry;
}

std::optional<FairQueue::Entry> FairQueue::Remove(const std::string& job) {
  for (auto of_owner = waiting_.begin(); of_owner != waiting_.end(); ++of_owner) {
    Jobs& jobs = of_owner->second;
    const auto found =
        std::find_if(jobs.begin(), jobs.end(), [&](const auto& entry) { return entry.second.job == job; });
    if (found == jobs.end()) continue;
    Entry entry{of_owner->first, job};
    jobs.erase(found);
    // The owner has one turn less: the last one, since its jobs are as many as its turns.
    const auto last =
        std::find_if(turns_.rbegin(), turns_.rend(), [&](const auto& turn) { return turn.second == entry.owner; });
    next_turn_[entry.owner] = last->first.first;
    turns_.erase(std::next(last).base());
    if (jobs.empty()) waiting_.erase(of_owner);
    return entry;
  }
  return std::nullopt;
}

}  // namespace fusion
