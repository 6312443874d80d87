#include "db/sqlite/migrator.h"

#include <unistd.h>

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "db/sqlite/quick_check.h"
#include "runtime/base/status_macros.h"

namespace fusion {

namespace {

int64_t NumberOf(const Migration& migration) {
  int64_t number = 0;  // stays where the name has none, which the test of the embedded names would notice
  (void)absl::SimpleAtoi(migration.name.substr(0, migration.name.find('_')), &number);
  return number;
}

// The numbers of the migrations that the database has. One from before they were written down has all up to its
// version.
absl::StatusOr<std::set<int64_t>> AppliedTo(Connection& connection, int64_t version) {
  std::set<int64_t> applied;
  ASSIGN_OR_RETURN(const int64_t written,
                   connection.QueryInt("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'applied_migrations'"));
  if (written == 0) {
    for (int64_t number = 1; number <= version; ++number) applied.insert(number);
    return applied;
  }
  RETURN_IF_ERROR(connection.Query("SELECT number FROM applied_migrations", {},
                                   [&](const SqlRow& row) { applied.insert(row.Int(0)); }));
  return applied;
}

std::string InsertionOf(const std::set<int64_t>& numbers) {
  std::string sql = "CREATE TABLE IF NOT EXISTS applied_migrations (number INTEGER PRIMARY KEY) STRICT;";
  for (const int64_t number : numbers) {
    absl::StrAppend(&sql, "INSERT OR IGNORE INTO applied_migrations VALUES (", number, ");");
  }
  return sql;
}

}  // namespace

absl::StatusOr<bool> Migrate(Connection& connection, const std::string& path, absl::Span<const Migration> migrations,
                             int64_t most_checked_bytes) {
  ASSIGN_OR_RETURN(const int64_t bytes, DatabaseBytes(connection));
  bool checked = bytes <= most_checked_bytes;
  if (checked) RETURN_IF_ERROR(QuickCheck(connection, path));
  ASSIGN_OR_RETURN(const int64_t version, connection.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(std::set<int64_t> applied, AppliedTo(connection, version));
  std::set<int64_t> known;
  for (const Migration& migration : migrations) known.insert(NumberOf(migration));
  for (const int64_t number : applied) {
    if (known.count(number) > 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has schema version ", number, ", this program knows up to ",
                     known.empty() ? 0 : *known.rbegin(), ". Start a newer fusiond, or choose another state folder"));
  }
  if (version > 0 && applied.size() < known.size()) {
    if (!checked) RETURN_IF_ERROR(QuickCheck(connection, path));
    checked = true;
    const std::string backup = absl::StrCat(path, ".v", version, ".bak");
    unlink(backup.c_str());
    RETURN_IF_ERROR(Annotate(connection.Run("VACUUM INTO ?", {backup}), "backup before migration"));
  }
  for (const Migration& migration : migrations) {
    if (!applied.insert(NumberOf(migration)).second) continue;
    const absl::Status done =
        connection.ExecScript(absl::StrCat("BEGIN IMMEDIATE;", migration.sql, ";", InsertionOf(applied),
                                           "PRAGMA user_version=", *applied.rbegin(), ";COMMIT;"));
    if (!done.ok()) {
      (void)connection.ExecScript("ROLLBACK");
      return Annotate(done, absl::StrCat("migration ", migration.name));
    }
  }
  return checked;
}

}  // namespace fusion
