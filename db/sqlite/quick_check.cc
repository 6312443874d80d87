#include "db/sqlite/quick_check.h"

#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

absl::Status Check(Connection& connection, const std::string& path, const std::string& pragma) {
  std::string found;
  RETURN_IF_ERROR(connection.Query(pragma, {}, [&](const SqlRow& row) { found = row.Text(0); }));
  if (found == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " is damaged: ", found, ". Restore a copy, or move it away"));
}

}  // namespace

absl::StatusOr<int64_t> DatabaseBytes(Connection& connection) {
  ASSIGN_OR_RETURN(const int64_t pages, connection.QueryInt("PRAGMA page_count"));
  ASSIGN_OR_RETURN(const int64_t page_bytes, connection.QueryInt("PRAGMA page_size"));
  return pages * page_bytes;
}

absl::Status QuickCheck(Connection& connection, const std::string& path) {
  return Check(connection, path, "PRAGMA quick_check(1)");
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
    const absl::Status checked = Check(connection, path, absl::StrCat("PRAGMA quick_check('", table, "')"));
    if (stop()) return absl::CancelledError(absl::StrCat("the check of ", path, " was ended"));
    RETURN_IF_ERROR(checked);
  }
  return absl::OkStatus();
}

}  // namespace fusion
