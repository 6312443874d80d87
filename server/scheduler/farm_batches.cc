// The part of Farm that serves compilations: tasks that they run, and wait for.
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "server/scheduler/awake_time.h"
#include "server/scheduler/farm.h"

namespace fusion {

// The tasks of one RunAll.
struct Farm::Batch {
  absl::Span<const FarmTask> tasks;
  // Parallel to `tasks`:
  std::vector<std::string> ids;
  std::vector<TaskRow> rows;                 // as they were added
  std::vector<std::optional<Final>> finals;  // once it is stored
  size_t done = 0;                           // tasks with a final row
  std::string unserved;                      // a requirement that no worker offers
  absl::Status given_up;                     // why the others have none
};

// Tasks are added one by one, so that workers start with the first while later payloads are still being written.
absl::Status Farm::AddTasks(Batch* batch) {
  for (const FarmTask& task : batch->tasks) {
    const absl::StatusOr<std::string> payload = artifacts_->payloads().Put(task.payload);
    absl::MutexLock lock(&mutex_);
    if (!payload.ok()) {
      for (size_t i = 0; i < batch->ids.size() && !stopping_; ++i) {
        scheduler_.Release(batch->ids[i], clock_(), batch->rows[i].job);
      }
      Wake();
      return payload.status();
    }
    TaskRow row;
    row.key = task.key, row.kind = task.kind, row.device_kind = task.device_kind, row.requirement = task.requirement;
    row.job = task.job, row.trace = task.trace;
    row.description = task.description, row.payload_digest = *payload;
    row.payload_bytes = static_cast<int64_t>(task.payload.size());
    row.timeout_ms = absl::ToInt64Milliseconds(task.timeout), row.threads = task.threads;
    row.created_ms = absl::ToUnixMillis(absl::Now());
    batch->ids.push_back(scheduler_.Add(row, clock_()));
    OfferPayload(batch->ids.back(), *payload, row.payload_bytes);
    batch->rows.push_back(std::move(row));
    Wake();
  }
  batch->finals.resize(batch->tasks.size());
  return absl::OkStatus();
}

void Farm::OfferPayload(const std::string& task_id, const std::string& digest, int64_t size_bytes) {
  std::string& own = payload_of_[task_id];  // "": the task is new
  if (own == digest) {
    artifacts_->payloads().Drop(digest);  // the task is its user already
  } else if (own.empty() || scheduler_.TakesPayload(task_id)) {
    if (!own.empty()) artifacts_->payloads().Drop(own);
    own = digest;
  } else {
    artifacts_->payloads().Drop(digest);
    return;
  }
  if (scheduler_.TakesPayload(task_id)) scheduler_.GivePayload(task_id, digest, size_bytes);
}

void Farm::SetJob(const std::string& job, std::vector<std::string> owners, int priority) {
  absl::MutexLock lock(&mutex_);
  scheduler_.SetJob(job, std::move(owners), priority);
}

void Farm::ForgetJob(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  scheduler_.ForgetJob(job);
}

absl::Status Farm::MendPayloads(const Batch& batch) {
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    if (batch.finals[i].has_value()) continue;
    {
      absl::MutexLock lock(&mutex_);
      if (!scheduler_.LacksPayload(batch.ids[i])) continue;
    }
    ASSIGN_OR_RETURN(const std::string digest, artifacts_->payloads().Put(batch.tasks[i].payload));
    absl::MutexLock lock(&mutex_);
    OfferPayload(batch.ids[i], digest, static_cast<int64_t>(batch.tasks[i].payload.size()));
    Wake();
  }
  return absl::OkStatus();
}

bool Farm::TakeFinals(absl::Time now, Batch* batch) {
  bool served = true;
  std::map<std::string, bool> is_offered;  // by requirement: there may be thousands of tasks and of workers
  for (size_t i = 0; i < batch->ids.size(); ++i) {
    if (batch->finals[i].has_value()) continue;
    const auto final = durable_.find(batch->ids[i]);
    if (final == durable_.end()) {
      if (const auto [offered, is_new] = is_offered.try_emplace(batch->rows[i].requirement, true); is_new) {
        offered->second = scheduler_.SomebodyOffers(offered->first, now);
        if (served && !offered->second) batch->unserved = offered->first;
        served = served && offered->second;
      }
      continue;
    }
    batch->finals[i] = final->second;
    ++batch->done;
    scheduler_.Release(batch->ids[i], now, batch->rows[i].job);
    if (scheduler_.Find(batch->ids[i]) == nullptr) durable_.erase(batch->ids[i]);
  }
  return served;
}

absl::Status Farm::AwaitFinals(const FarmWait& wait, Batch* batch) {
  const size_t all = batch->tasks.size();
  size_t told_done = static_cast<size_t>(-1);
  std::string told_message;
  AwakeTime unserved(clock_());
  bool away = false;
  const auto tell_away = [&](bool now_away) {
    if (wait.away && away != now_away) wait.away(away = now_away);
  };
  const auto come_back = absl::MakeCleanup([&] { tell_away(false); });
  while (batch->done < all) {
    std::string message;
    FarmLack lack{.kind = batch->tasks[0].device_kind, .timeout = wait.queue_timeout};
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time now = clock_();
      unserved.Look(now);
      if (TakeFinals(now, batch)) {
        unserved = AwakeTime(now);
      } else {
        message = absl::StrCat("no worker for ", lack.kind, "; kinds attached: ", AttachedKindsLocked());
        const std::string failure = absl::StrCat(message, "; gave up after ", absl::FormatDuration(wait.queue_timeout));
        lack.requirement = batch->unserved, lack.words = message;
        if (wait.needs) lack.failure = failure;
        lack.waited = wait.WaitedFor(lack.requirement) + unserved.passed();
        if (lack.waited >= wait.queue_timeout) {
          batch->given_up = absl::FailedPreconditionError(failure);
          return absl::OkStatus();
        }
      }
      if (stopping_) return absl::UnavailableError("the server is shutting down");
      if (batch->done < all && batch->done == told_done && message == told_message) {
        threads_->WaitFor(&changed_, &mutex_, absl::Milliseconds(100));
      }
    }
    RETURN_IF_ERROR(MendPayloads(*batch));
    tell_away(!message.empty());
    if (!message.empty() && wait.gives_up && wait.gives_up(lack)) return absl::CancelledError("the wait was given up");
    if (wait.cancelled && wait.cancelled()) return absl::CancelledError("cancelled");
    if (wait.progress && (batch->done != told_done || message != told_message)) {
      wait.progress(static_cast<int64_t>(batch->done), static_cast<int64_t>(all), message);
    }
    told_done = batch->done, told_message = message;
  }
  return absl::OkStatus();
}

void Farm::ReleaseTasks(const Batch& batch) {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    if (!batch.finals[i].has_value() && !stopping_) {
      scheduler_.Release(batch.ids[i], clock_(), batch.rows[i].job);
    }
    if (scheduler_.Find(batch.ids[i]) == nullptr) durable_.erase(batch.ids[i]);
  }
  Wake();
}

FarmOutcome Farm::OutcomeOf(const FarmTask& task, const Final& final) {
  FarmOutcome outcome;
  outcome.worker = final.row.worker;
  if (final.row.state == TaskPhase::kDone && final.result != nullptr) {
    outcome.result = *final.result;
  } else if (final.row.attempts == 0) {  // no worker failed, and no worker's word counted: the task is not at fault
    outcome.status = absl::FailedPreconditionError(absl::StrCat(task.description, ": ", final.row.evidence));
  } else {
    outcome.status = absl::InternalError(
        absl::StrCat(task.description, ": given up after ", final.row.attempts, " attempts: ", final.row.evidence));
  }
  return outcome;
}

absl::StatusOr<std::vector<FarmOutcome>> Farm::RunAll(absl::Span<const FarmTask> tasks, const FarmWait& wait) {
  Batch batch{tasks};
  RETURN_IF_ERROR(AddTasks(&batch));
  const absl::Status ended = AwaitFinals(wait, &batch);
  ReleaseTasks(batch);
  RETURN_IF_ERROR(ended);
  std::vector<FarmOutcome> outcomes(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (batch.finals[i].has_value()) {
      outcomes[i] = OutcomeOf(tasks[i], *batch.finals[i]);
    } else {
      outcomes[i].status = batch.given_up;
    }
  }
  return outcomes;
}

}  // namespace fusion
