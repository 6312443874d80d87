// One SQLite connection with cached statements. It is not thread-safe: one thread at a time may use it.
// Errors are RESOURCE_EXHAUSTED for a full disk, DATA_LOSS for a damaged file, ALREADY_EXISTS for a violated UNIQUE,
// UNAVAILABLE if the file cannot be opened, and INTERNAL otherwise. Messages end with SQLite's own.
#ifndef FUSION_DB_SQLITE_CONNECTION_H_
#define FUSION_DB_SQLITE_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fusion {

struct Bytes {  // is bound as a BLOB
  std::string value;
};
using SqlValue = std::variant<int64_t, double, std::string, Bytes>;

// A row of a result; valid only within the callback of Query.
class SqlRow {
 public:
  explicit SqlRow(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t Int(int column) const;
  double Double(int column) const;
  std::string Text(int column) const;  // reads BLOBs, too

 private:
  sqlite3_stmt* statement_;
};

class Connection {
 public:
  enum class Mode { kReadWrite, kReadOnly };

  // Read-write mode creates the file and uses WAL with synchronous=FULL; nothing is checkpointed before Checkpoint.
  // Only one read-write connection per file may exist, because SQLite before 3.51.3 can corrupt a WAL database that two
  // connections write or checkpoint at once. Read-only connections therefore never checkpoint.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, Mode mode);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  absl::Status ExecScript(const std::string& sql);
  absl::Status Run(const std::string& sql, const std::vector<SqlValue>& values = {});
  absl::Status Query(const std::string& sql, const std::vector<SqlValue>& values,
                     const std::function<void(const SqlRow&)>& on_row);
  absl::StatusOr<int64_t> QueryInt(const std::string& sql);
  // Pages in the log after the latest commit, checkpointed or not.
  int log_pages() const { return log_pages_; }
  // Copies the log's pages into the database as far as no reader needs them there.
  absl::Status Checkpoint();
  // Whether a sync has failed. Bytes of a failed sync may be neither on disk nor written by a second one, which
  // succeeds all the same (fsync(2), EIO): the process should end, and the next one read what is there.
  bool sync_failed() const { return sync_failed_; }
  // Whether something failed since the last call because of the disk: it is full or read-only, or does not answer.
  bool TakeDiskFailed() { return std::exchange(disk_failed_, false); }
  // Ends the statement that another thread runs here, with CANCELLED. Thread-safe.
  void Interrupt();
  int64_t changed_rows() const;  // by the latest Run, triggers left out
  // Called with each error of a damaged file, on the thread that meets it.
  void set_on_damage(std::function<void(const absl::Status&)> callback) { on_damage_ = std::move(callback); }
  // Called with the text of each statement when it is prepared.
  void set_on_statement(std::function<void(const std::string&)> callback) { on_statement_ = std::move(callback); }

 private:
  explicit Connection(sqlite3* db) : db_(db) {}
  absl::Status Error(int code, const std::string& what);
  absl::StatusOr<sqlite3_stmt*> Prepared(const std::string& sql, const std::vector<SqlValue>& values);

  sqlite3* db_;
  int log_pages_ = 0;
  bool sync_failed_ = false, disk_failed_ = false;
  std::map<std::string, sqlite3_stmt*> statements_;
  std::function<void(const std::string&)> on_statement_;
  std::function<void(const absl::Status&)> on_damage_;
};

}  // namespace fusion

#endif  // FUSION_DB_SQLITE_CONNECTION_H_
