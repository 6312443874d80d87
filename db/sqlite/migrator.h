// Migrations: numbered SQL scripts. Each is applied once, in a transaction of its own, in the order of the numbers. The
// table applied_migrations has the numbers of those that a database has, so that one with a smaller number, which came
// into the program later, is still applied; PRAGMA user_version is the largest.
#ifndef FUSION_DB_SQLITE_MIGRATOR_H_
#define FUSION_DB_SQLITE_MIGRATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/sqlite/connection.h"

namespace fusion {

struct Migration {
  std::string name;  // "0001_initial"
  std::string sql;
};

// Returns db/migrations/*.sql in order, embedded at build time.
const std::vector<Migration>& EmbeddedMigrations();

// Files up to this size are read and checked in full at each start: a third of a second.
inline constexpr int64_t kCheckedAtStartBytes = int64_t{64} << 20;

// Copies the file to `PATH.v<old>.bak` if it will change, and applies the migrations that are missing. Checks the file
// (quick_check) before, if it has at most `most_checked_bytes` or will change. Returns whether it was checked. Fails
// with FAILED_PRECONDITION if the file is newer than this program, DATA_LOSS if it is damaged.
absl::StatusOr<bool> Migrate(Connection& connection, const std::string& path, absl::Span<const Migration> migrations,
                             int64_t most_checked_bytes = kCheckedAtStartBytes);

}  // namespace fusion

#endif  // FUSION_DB_SQLITE_MIGRATOR_H_
