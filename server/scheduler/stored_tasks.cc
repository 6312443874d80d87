#include "server/scheduler/stored_tasks.h"

#include <utility>
#include <variant>

namespace fusion {

void StoredTasks::Restore(const TaskRow& row, absl::Time now) {
  tasks_[row.id] = {{row.id, row.worker, row.fence},
                    row.state == TaskPhase::kLeased,
                    row.attempts,
                    row.evidence.size(),
                    row.payload_digest,
                    now + kLease / 2};
}

void StoredTasks::Follow(const TaskRow& row, AcceptedRows accepted, absl::Time now, std::vector<TaskCall>* calls) {
  const bool is_final = row.state > TaskPhase::kLeased, is_leased = row.state == TaskPhase::kLeased;
  const auto known = tasks_.find(row.id);
  if (known == tasks_.end() && is_final) return;  // it was cancelled before anybody stored it
  const bool is_new = known == tasks_.end();
  Stored& stored = is_new ? tasks_[row.id] : known->second;
  if (is_new) {
    stored = {{row.id, "", 0}, false, 0, 0, row.payload_digest, now};
    calls->push_back(QueueTask{row});
  }
  // A result that counts by the word of others ends a task that somebody has only after that one's own has ended.
  const bool done_by_holder = row.state == TaskPhase::kDone && stored.leased && row.worker == stored.claim.worker &&
                              row.attempts == stored.attempts;
  if (stored.leased && !done_by_holder && !(is_leased && row.fence == stored.claim.fence)) {
    FailTask fail{stored.Held()};
    if (is_final && row.state != TaskPhase::kDone) fail.then = row.state;
    fail.counts = row.attempts - (is_leased ? 1 : 0) == stored.attempts;
    fail.evidence = row.evidence.substr(stored.evidence_bytes);
    if (!fail.counts) --stored.attempts;
    calls->push_back(std::move(fail));
    stored.leased = false;
    if (is_final && row.state != TaskPhase::kDone) {
      tasks_.erase(row.id);
      return;
    }
    stored.evidence_bytes = row.evidence.size();
  }
  if (row.state == TaskPhase::kDone) {
    calls->push_back(CompleteTask{stored.Held(), row.worker, std::move(accepted)});
    tasks_.erase(row.id);
    return;
  }
  if (is_final) {
    calls->push_back(FailTask{stored.Held(), row.state, true, row.evidence.substr(stored.evidence_bytes)});
    tasks_.erase(row.id);
    return;
  }
  if (!stored.leased && row.payload_digest != stored.payload_digest) {
    stored.payload_digest = row.payload_digest;
    calls->push_back(QueueTask{row});
  }
  if (is_leased && !stored.leased) {
    calls->push_back(ClaimTask{row.id, row.worker, kLease});
    stored.claim = {row.id, row.worker, row.fence};
    stored.leased = true;
    ++stored.attempts;
    stored.renew_at = now + kLease / 2;
  }
}

void StoredTasks::Renew(absl::Time now, std::vector<TaskCall>* calls) {
  if (now < look_at_) return;
  look_at_ = now + kLease / 16;
  for (auto& [id, stored] : tasks_) {
    if (!stored.leased || now < stored.renew_at) continue;
    calls->push_back(RenewTask{stored.claim, kLease});
    stored.renew_at = now + kLease / 2;
  }
}

StoredTasks::Surprises StoredTasks::Take(absl::Span<const TaskCall> calls, absl::Span<const TaskAnswer> answers) {
  Surprises surprises;
  const auto lose = [&](const std::string& task) {
    surprises.claims[task] = std::nullopt;
    tasks_.erase(task);  // when the scheduler wants it again, it is queued again, if nobody has it
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const TaskAnswer& answer = answers[i];
    if (const auto* claim = std::get_if<ClaimTask>(&calls[i])) {
      const auto stored = tasks_.find(claim->task);
      if (!answer.held) {
        lose(claim->task);
      } else if (stored != tasks_.end() && stored->second.claim.fence != answer.fence) {
        surprises.claims[claim->task] = stored->second.claim.fence = answer.fence;
      }
    } else if (answer.held) {
      continue;
    } else if (const auto* renew = std::get_if<RenewTask>(&calls[i])) {
      lose(renew->claim.task);
    } else if (const auto* complete = std::get_if<CompleteTask>(&calls[i])) {
      surprises.refused.insert(complete->claim.task);
    }
    // Where another scheduler has queued or failed the task, the next claim says who has it.
  }
  return surprises;
}

}  // namespace fusion
