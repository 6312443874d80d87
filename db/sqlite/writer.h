// Writer: the one thread that writes a database. It commits operations of several callers as a group, because each
// commit costs one fsync, however many operations it holds. Each operation runs in a savepoint of its own, so that a
// failed operation does not affect the others of its group.
#ifndef FUSION_DB_SQLITE_WRITER_H_
#define FUSION_DB_SQLITE_WRITER_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "db/sqlite/connection.h"

namespace fusion {

class Writer {
 public:
  using Operation = std::function<absl::Status(Connection&)>;
  // Called on the writer thread after each commit.
  using CommitObserver = std::function<void(double seconds, int operations)>;

  // Called on the writer thread, before anybody is answered, when a sync has failed (Connection::sync_failed). It
  // should end the process. If it returns, the operations of a commit that could not be synced fail.
  using FailedSync = std::function<void(const absl::Status&)>;
  // Called on the writer thread after each group, before anybody is answered: whether the disk takes what is written.
  using Stored = std::function<void(const absl::Status&)>;

  Writer(std::unique_ptr<Connection> connection, CommitObserver observer, FailedSync on_failed_sync = nullptr,
         Stored on_stored = nullptr);
  // Executes all queued operations first.
  ~Writer();

  // Returns when the operation is durable, or has failed without leaving a trace. Any thread may call. The operation
  // runs inside a transaction and must not begin or end one. It may run a second time, after one that left no trace:
  // where the disk has no room for a longer log, the log is emptied into the database in between.
  absl::Status Write(Operation operation);
  int queue_depth() const;

 private:
  struct Pending {
    Operation operation;
    absl::Status status;
    bool done = false;
  };
  void Loop();
  void CommitGroup(const std::vector<Pending*>& group);
  absl::Status RunGroup(const std::vector<Pending*>& group);
  bool EmptyLog();
  void Checkpoint();
  void LookAtSync(const absl::Status& status);

  const std::unique_ptr<Connection> connection_;  // used only on the writer thread
  const CommitObserver observer_;
  const FailedSync on_failed_sync_;
  const Stored on_stored_;
  mutable absl::Mutex mutex_;
  std::deque<Pending*> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fusion

#endif  // FUSION_DB_SQLITE_WRITER_H_
