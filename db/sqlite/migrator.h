// Migrations: numbered SQL scripts, each applied once in a transaction of its own; PRAGMA user_version is the number of
// the last one.
#ifndef FUSION_DB_SQLITE_MIGRATOR_H_
#define FUSION_DB_SQLITE_MIGRATOR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "db/sqlite/connection.h"

namespace fusion {

struct Migration {
  std::string name;  // "0001_initial"
  std::string sql;
};

// db/migrations/*.sql in order, embedded at build time. Migration i brings the file to version i + 1.
const std::vector<Migration>& EmbeddedMigrations();

// Checks the file (quick_check), copies it to `PATH.v<old>.bak` if it is about to change, and applies what is missing.
// FAILED_PRECONDITION for a file newer than this program, DATA_LOSS for a damaged one.
absl::Status Migrate(Connection& connection, const std::string& path, absl::Span<const Migration> migrations);

}  // namespace fusion

#endif  // FUSION_DB_SQLITE_MIGRATOR_H_
