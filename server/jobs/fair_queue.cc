#include "server/jobs/fair_queue.h"

#include <algorithm>

namespace fusion {

void FairQueue::Push(const std::string& owner, const std::string& job) {
  int64_t& next = next_turn_[owner];
  const int64_t turn = std::max(turn_, next);
  next = turn + 1;
  waiting_[{turn, arrivals_++}] = {owner, job};
}

FairQueue::Entry FairQueue::Pop() {
  auto first = waiting_.begin();
  turn_ = first->first.first;
  Entry entry = std::move(first->second);
  waiting_.erase(first);
  // Owners whose turns are over are as if they had never been here.
  std::erase_if(next_turn_, [&](const auto& next) { return next.second <= turn_; });
  return entry;
}

std::optional<FairQueue::Entry> FairQueue::Remove(const std::string& job) {
  const auto found =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& entry) { return entry.second.job == job; });
  if (found == waiting_.end()) return std::nullopt;
  Entry entry = std::move(found->second);
  waiting_.erase(found);
  return entry;
}

}  // namespace fusion
