// QuickCheck: whether a database file is well-formed. It reads the whole file, which takes a second for each few
// hundred megabytes that are in memory, and as long as the disk needs otherwise.
#ifndef FUSION_DB_SQLITE_QUICK_CHECK_H_
#define FUSION_DB_SQLITE_QUICK_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite/connection.h"

namespace fusion {

// For those who read that a database is damaged.
constexpr char kWhatToDoAboutDamage[] =
    "Stop fusiond and restore a backup, or move the state folder away; 'fusionctl admin check' names more";

// The size of the database, in bytes.
absl::StatusOr<int64_t> DatabaseBytes(Connection& connection);

// Fails with DATA_LOSS if the database is damaged; `path` is for the message.
absl::Status QuickCheck(Connection& connection, const std::string& path);

// The same for a database that is in use: one table after another, so that no snapshot is held for long. Ends with
// CANCELLED a tenth of a second after `stop` returns true; another thread calls it.
absl::Status QuickCheckWhileInUse(Connection& connection, const std::string& path, const std::function<bool()>& stop);

}  // namespace fusion

#endif  // FUSION_DB_SQLITE_QUICK_CHECK_H_
