// Writer: the one thread that writes a database. Operations of many callers are committed in groups, because a commit
// costs an fsync whatever it holds; each operation stands in a savepoint of its own, so that one that fails leaves
// the others of its group alone.
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

  Writer(std::unique_ptr<Connection> connection, CommitObserver observer);
  // Finishes what is queued.
  ~Writer();

  // Returns when the operation is durable, or has failed and left no trace. Any thread. The operation runs inside a
  // transaction and must not begin or end one; it may run only once.
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

  const std::unique_ptr<Connection> connection_;  // writer thread only
  const CommitObserver observer_;
  mutable absl::Mutex mutex_;
  std::deque<Pending*> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fusion

#endif  // FUSION_DB_SQLITE_WRITER_H_
