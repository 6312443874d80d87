#include "db/sqlite/connection.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {

int64_t SqlRow::Int(int column) const { return sqlite3_column_int64(statement_, column); }
double SqlRow::Double(int column) const { return sqlite3_column_double(statement_, column); }
std::string SqlRow::Text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return data == nullptr ? std::string()
                         : std::string(static_cast<const char*>(data), sqlite3_column_bytes(statement_, column));
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path, Mode mode) {
  sqlite3* db = nullptr;
  const int flags = mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Connection> connection(new Connection(db));
  if (code != SQLITE_OK) return connection->Error(code, absl::StrCat("cannot open ", path));
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_timeout(db, 5000);
  if (mode == Mode::kReadOnly) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    return connection;
  }
  // SQLite's own checkpoints keep their errors for themselves.
  sqlite3_wal_hook(
      db,
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<Connection*>(self)->log_pages_ = pages;
        return SQLITE_OK;
      },
      connection.get());
  RETURN_IF_ERROR(connection->ExecScript(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA journal_size_limit=67108864;"));
  return connection;
}

Connection::~Connection() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

absl::Status Connection::Error(int code, const std::string& what) {
  if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC) sync_failed_ = true;
  const int kind = code & 0xff;
  disk_failed_ = disk_failed_ || kind == SQLITE_FULL || kind == SQLITE_IOERR || kind == SQLITE_READONLY ||
                 kind == SQLITE_CANTOPEN || kind == SQLITE_PERM;
  const std::string message =
      absl::StrCat(what, ": ", db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(code), " (SQLite ", code, ")");
  switch (kind) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: {
      const absl::Status damage = absl::DataLossError(message);
      if (on_damage_) on_damage_(damage);
      return damage;
    }
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_BUSY:
      return absl::UnavailableError(message);
    case SQLITE_INTERRUPT:
      return absl::CancelledError(message);
    case SQLITE_CONSTRAINT:
      if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY) {
        return absl::AlreadyExistsError(message);
      }
      return absl::InternalError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status Connection::ExecScript(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, "database script failed");
}

absl::StatusOr<sqlite3_stmt*> Connection::Prepared(const std::string& sql, const std::vector<SqlValue>& values) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr) {
    if (on_statement_) on_statement_(sql);
    const int code = sqlite3_prepare_v3(db_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Error(code, absl::StrCat("cannot prepare '", sql, "'"));
  }
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    const SqlValue& value = values[i];
    int code = SQLITE_OK;
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      code = sqlite3_bind_int64(statement, i + 1, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      code = sqlite3_bind_double(statement, i + 1, *real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      code = sqlite3_bind_text64(statement, i + 1, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
    } else {
      const std::string& bytes = std::get<Bytes>(value).value;
      code = sqlite3_bind_blob64(statement, i + 1, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
    }
    if (code != SQLITE_OK) return Error(code, absl::StrCat("cannot bind value ", i + 1, " of '", sql, "'"));
  }
  return statement;
}

absl::Status Connection::Query(const std::string& sql, const std::vector<SqlValue>& values,
                               const std::function<void(const SqlRow&)>& on_row) {
  ASSIGN_OR_RETURN(sqlite3_stmt * statement, Prepared(sql, values));
  int code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    if (on_row) on_row(SqlRow(statement));
  }
  absl::Status status = code == SQLITE_DONE ? absl::OkStatus() : Error(code, absl::StrCat("'", sql, "' failed"));
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return status;
}

absl::Status Connection::Run(const std::string& sql, const std::vector<SqlValue>& values) {
  return Query(sql, values, nullptr);
}

absl::StatusOr<int64_t> Connection::QueryInt(const std::string& sql) {
  int64_t result = 0;
  RETURN_IF_ERROR(Query(sql, {}, [&](const SqlRow& row) { result = row.Int(0); }));
  return result;
}

absl::Status Connection::Checkpoint() {
  const int code = sqlite3_wal_checkpoint_v2(db_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  return code == SQLITE_OK || code == SQLITE_BUSY ? absl::OkStatus() : Error(code, "cannot checkpoint the database");
}

void Connection::Interrupt() { sqlite3_interrupt(db_); }

int64_t Connection::changed_rows() const { return sqlite3_changes(db_); }

}  // namespace fusion
