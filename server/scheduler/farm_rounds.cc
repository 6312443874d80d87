// The part of Farm that is its pump: rounds of decisions, each stored before anybody sees it.
#include <utility>

#include "absl/time/clock.h"
#include "server/scheduler/farm.h"

namespace fusion {
namespace {
constexpr absl::Duration kPumpInterval = absl::Milliseconds(250);
}  // namespace

void Farm::Pump() {
  bool last = false;
  while (!last) {
    {
      absl::MutexLock lock(&mutex_);
      if (!pump_pending_) threads_->WaitFor(&pump_wanted_, &mutex_, kPumpInterval);
      pump_pending_ = false;
      // The last round answers every poll that is held. Later polls are refused at once, so that workers that ask again
      // without a pause cannot keep the server from stopping.
      last = pump_ended_ = stopping_;
    }
    PumpOnce();
  }
}

void Farm::PumpOnce() {
  Round round = Decide();
  if (saved_.ok()) saved_ = StoreRound(&round);
  Publish(saved_, &round);
  DrainSuspects(round);
}

Farm::Round Farm::Decide() {
  Round round;
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_();
  round.stopping = stopping_;
  round.failures_of_a_suspect = scheduler_.config().failures_of_a_suspect;
  // This round may be late, because the store or the machine stood still. Calls that have arrived meanwhile count
  // first, and nobody loses a lease for calls that this server could not take.
  if (const absl::Duration late = now - last_tick_; late > scheduler_.config().heartbeat) scheduler_.Extend(late);
  last_tick_ = now;
  for (HeldPoll& held : polls_) {
    const FarmPoll& poll = held.poll;
    held.renewed = poll.IsHeartbeat() && scheduler_.Renew(poll.worker_id, poll.task_id, poll.fence, poll.stage, now);
  }
  scheduler_.Tick(now);
  LookAtWindows(&round);
  SettleStranded(now);
  const bool due = now - held_looked_at_ >= kPumpInterval || now < held_looked_at_;
  if (const bool chance = scheduler_.TakeChance(); chance || hung_up_ || round.stopping || due) {
    hung_up_ = false, held_looked_at_ = now;
    AnswerPolls(now, &held_, &round);
  }
  AnswerPolls(now, &polls_, &round);
  held_.splice(held_.end(), polls_);
  round.rows = scheduler_.TakeChanged();
  for (const TaskRow& row : round.rows) {
    auto accepted = accepted_.extract(row.state == TaskPhase::kDone ? row.id : "");
    stored_.Follow(row, accepted.empty() ? AcceptedRows() : std::move(accepted.mapped()), now, &round.calls);
  }
  stored_.Renew(now, &round.calls);
  // Behind the rows by which they became known, in one transaction with them.
  for (SourceRow& source : judge_.TakeChanged()) round.calls.push_back(NoteSource{std::move(source)});
  round.results = std::exchange(results_, {});
  UpdateMetrics();
  return round;
}

void Farm::AnswerPolls(absl::Time now, std::list<HeldPoll>* polls, Round* round) {
  for (auto held = polls->begin(); held != polls->end();) {
    std::optional<FarmAnswer> answer = AnswerTo(*held, now, round);
    if (!answer.has_value()) {
      held->looked_at = true;
      ++held;
      continue;
    }
    round->answers.emplace_back(std::move(held->poll.reply), *std::move(answer));
    held = polls->erase(held);
  }
}

std::optional<FarmAnswer> Farm::AnswerTo(const HeldPoll& held, absl::Time now, Round* round) {
  const FarmPoll& poll = held.poll;
  FarmAnswer answer;
  if (poll.IsHeartbeat()) {
    if (held.renewed && scheduler_.Holds(poll.worker_id, poll.task_id, poll.fence)) {
      answer.task = *scheduler_.Find(poll.task_id);
    }
  } else if (!round->stopping && !poll.gone->load() && (!held.looked_at || scheduler_.HasQueued())) {
    answer.task = scheduler_.Assign(poll.worker_id, now);
    if (answer.task.has_value()) {
      round->leased.push_back(TaskLine(LogLevel::kDebug, "task leased", *answer.task, poll.worker_id));
    }
  }
  if (answer.task.has_value()) {
    answer.next_sync = scheduler_.config().heartbeat;
    return answer;
  }
  if (!round->stopping && held.until > now && !poll.gone->load()) return std::nullopt;
  answer.next_sync = round->stopping                        ? absl::Seconds(1)
                     : poll.max_wait > absl::ZeroDuration() ? absl::ZeroDuration()
                                                            : scheduler_.config().heartbeat;
  return answer;
}

absl::Status Farm::StoreRound(Round* round) {
  const int64_t wall_ms = absl::ToUnixMillis(absl::Now());
  bool stopping = round->stopping;
  while (true) {
    absl::StatusOr<std::vector<TaskAnswer>> answers = store_->CallTasks(round->calls, wall_ms);
    if (observer_) observer_(answers.status());
    if (answers.ok()) {
      TakeAnswers(*answers, round);
      return absl::OkStatus();
    }
    log_({LogLevel::kError,
          "cannot store the state of tasks; workers wait until it can be stored",
          {{"error", answers.status().ToString()}}});
    if (stopping) return answers.status();
    threads_->Sleep(absl::Seconds(1));
    absl::MutexLock lock(&mutex_);
    stopping = stopping_;
  }
}

void Farm::TakeAnswers(const std::vector<TaskAnswer>& answers, Round* round) {
  absl::MutexLock lock(&mutex_);
  StoredTasks::Surprises surprises = stored_.Take(round->calls, answers);
  for (const auto& [task, fence] : surprises.claims) {
    if (fence.has_value()) {
      scheduler_.TakeFence(task, *fence);
    } else {
      scheduler_.LoseClaim(task, clock_());
    }
    for (auto& [reply, answer] : round->answers) {
      if (!answer.task.has_value() || answer.task->id != task) continue;
      if (fence.has_value()) {
        answer.task->fence = *fence;
      } else {
        answer.task.reset();
      }
    }
  }
  for (TaskRow& row : round->rows) {
    if (surprises.refused.count(row.id) == 0 || row.state != TaskPhase::kDone) continue;
    row.state = TaskPhase::kPoisoned;
    row.evidence += "another server has taken the task over\n";
  }
}

void Farm::Publish(const absl::Status& saved, Round* round) {
  for (const LogLine& line : round->leased) log_(line);
  for (auto& [reply, answer] : round->answers) {
    if (!saved.ok()) answer.status = saved;
    reply(answer);
  }
  if (round->rows.empty()) return;
  absl::MutexLock lock(&mutex_);
  for (TaskRow& row : round->rows) {
    if (!saved.ok() || row.state <= TaskPhase::kLeased) continue;
    const TaskRow* live = scheduler_.Find(row.id);
    if (live != nullptr && live->state <= TaskPhase::kLeased) continue;  // another task has taken over the id
    if (const auto payload = payload_of_.find(row.id); payload != payload_of_.end()) {
      artifacts_->payloads().Drop(payload->second);
      payload_of_.erase(payload);
    }
    if (live != nullptr) durable_[row.id] = {row, std::move(round->results[row.id])};
  }
  std::erase_if(durable_, [&](const auto& entry) { return scheduler_.Find(entry.first) == nullptr; });
  changed_.SignalAll();
}

}  // namespace fusion
