#include "db/sqlite/writer.h"

#include <chrono>
#include <iterator>

#include "absl/algorithm/container.h"

namespace fusion {
namespace {
constexpr int kMaxGroup = 64;
constexpr int kCheckpointPages = 1000;  // SQLite's own default
}  // namespace

Writer::Writer(std::unique_ptr<Connection> connection, CommitObserver observer, FailedSync on_failed_sync,
               Stored on_stored)
    : connection_(std::move(connection)),
      observer_(std::move(observer)),
      on_failed_sync_(std::move(on_failed_sync)),
      on_stored_(std::move(on_stored)),
      thread_([this] { Loop(); }) {}

Writer::~Writer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::Status Writer::Write(Operation operation) {
  Pending pending{std::move(operation), absl::OkStatus(), false};
  absl::MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the database is closing");
  queue_.push_back(&pending);
  mutex_.Await(absl::Condition(&pending.done));
  return pending.status;
}

int Writer::queue_depth() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(queue_.size());
}

void Writer::Loop() {
  while (true) {
    std::vector<Pending*> group;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](Writer* writer) ABSL_NO_THREAD_SAFETY_ANALYSIS { return writer->stopping_ || !writer->queue_.empty(); },
          this));
      if (queue_.empty()) return;
      while (!queue_.empty() && group.size() < kMaxGroup) {
        group.push_back(queue_.front());
        queue_.pop_front();
      }
    }
    // The loop does not wait for more operations: while one group commits, the next one gathers.
    CommitGroup(group);
    {
      absl::MutexLock lock(&mutex_);
      for (Pending* pending : group) pending->done = true;
    }
    Checkpoint();
  }
}

// Nobody waits for it. One that fails leaves the log as it is, for the next one.
void Writer::Checkpoint() {
  if (connection_->log_pages() >= kCheckpointPages) LookAtSync(connection_->Checkpoint());
}

void Writer::LookAtSync(const absl::Status& status) {
  if (!status.ok() && connection_->sync_failed() && on_failed_sync_) on_failed_sync_(status);
}

void Writer::CommitGroup(const std::vector<Pending*>& group) {
  (void)connection_->TakeDiskFailed();
  absl::Status stored = RunGroup(group);
  bool disk_failed = connection_->TakeDiskFailed();
  if (disk_failed && EmptyLog()) {
    std::vector<Pending*> failed;
    absl::c_copy_if(group, std::back_inserter(failed), [](const Pending* pending) { return !pending->status.ok(); });
    (void)connection_->TakeDiskFailed();
    stored = RunGroup(failed);
    disk_failed = connection_->TakeDiskFailed();
  }
  if (on_stored_) on_stored_(disk_failed ? stored : absl::OkStatus());
}

// Returns whether the next transaction may begin the log anew, in the room that it has.
bool Writer::EmptyLog() {
  if (connection_->sync_failed() || connection_->log_pages() == 0) return false;
  const absl::Status emptied = connection_->Checkpoint();
  LookAtSync(emptied);
  return emptied.ok();
}

// Returns the first error of the transaction or of an operation.
absl::Status Writer::RunGroup(const std::vector<Pending*>& group) {
  const auto start = std::chrono::steady_clock::now();
  absl::Status begun = connection_->Run("BEGIN IMMEDIATE");
  if (!begun.ok()) {
    for (Pending* pending : group) pending->status = begun;
    return begun;
  }
  absl::Status first;
  for (Pending* pending : group) {
    pending->status = connection_->Run("SAVEPOINT operation");
    if (pending->status.ok()) pending->status = pending->operation(*connection_);
    first.Update(pending->status);
    if (!pending->status.ok()) (void)connection_->Run("ROLLBACK TO operation");
    (void)connection_->Run("RELEASE operation");
  }
  absl::Status committed = connection_->Run("COMMIT");
  LookAtSync(committed);
  if (!committed.ok()) {
    (void)connection_->Run("ROLLBACK");
    for (Pending* pending : group) {
      if (pending->status.ok()) pending->status = committed;
    }
  }
  if (observer_) {
    observer_(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
              static_cast<int>(group.size()));
  }
  return committed.ok() ? first : committed;
}

}  // namespace fusion
