#include "db/sqlite/quick_check.h"

#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// The first finding of SQLite's, which names a database in front and all others behind it.
std::string FirstOf(const std::string& found) {
  for (const absl::string_view line : absl::StrSplit(found, '\n')) {
    if (!absl::StartsWith(line, "***")) return std::string(line);
  }
  return found;
}

// `where`: which part of the database the pragma checks, in words.
absl::Status Check(Connection& connection, const std::string& path, const std::string& where,
                   const std::string& pragma) {
  std::string found;
  const absl::Status read = connection.Query(pragma, {}, [&](const SqlRow& row) {
    if (found.empty()) found = row.Text(0);
  });
  if (!read.ok() && !absl::IsDataLoss(read)) return read;
  if (read.ok() && found == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " is damaged", where, ": ",
                                          read.ok() ? FirstOf(found) : std::string(read.message()), ". ",
                                          kWhatToDoAboutDamage));
}

}  // namespace

absl::StatusOr<int64_t> DatabaseBytes(Connection& connection) {
  ASSIGN_OR_RETURN(const int64_t pages, connection.QueryInt("PRAGMA page_count"));
  ASSIGN_OR_RETURN(const int64_t page_bytes, connection.QueryInt("PRAGMA page_size"));
  return pages * page_bytes;
}

absl::Status QuickCheck(Connection& connection, const std::string& path) {
  return Check(connection, path, "", "PRAGMA quick_check(1)");
}

absl::Status QuickCheckWhileInUse(Connection& connection, const std::string& path, const std::function<bool()>& stop) {
  // Interrupt ends only what runs, so that it is repeated until the loop has seen it.
  absl::Notification over;
  std::thread watcher([&] {
    while (!over.WaitForNotificationWithTimeout(absl::Milliseconds(100))) {
      if (stop()) connection.Interrupt();
    }
  });
  auto joined = absl::MakeCleanup([&] {
    over.Notify();
    watcher.join();
  });
  std::vector<std::string> tables;
  RETURN_IF_ERROR(connection.Query("SELECT name FROM sqlite_schema WHERE type = 'table'", {},
                                   [&](const SqlRow& row) { tables.push_back(row.Text(0)); }));
  for (const std::string& table : tables) {
    const absl::Status checked =
        Check(connection, path, absl::StrCat(" in table ", table), absl::StrCat("PRAGMA quick_check('", table, "')"));
    if (stop()) return absl::CancelledError(absl::StrCat("the check of ", path, " was ended"));
    RETURN_IF_ERROR(checked);
  }
  return absl::OkStatus();
}

}  // namespace fusion
