#include "db/sqlite/migrator.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::Status Migrate(Connection& connection, const std::string& path, absl::Span<const Migration> migrations) {
  std::string check;
  RETURN_IF_ERROR(connection.Query("PRAGMA quick_check(1)", {}, [&](const SqlRow& row) { check = row.Text(0); }));
  if (check != "ok") {
    return absl::DataLossError(absl::StrCat(path, " is damaged: ", check, ". Restore a copy, or move it away"));
  }
  ASSIGN_OR_RETURN(const int64_t version, connection.QueryInt("PRAGMA user_version"));
  const int64_t newest = static_cast<int64_t>(migrations.size());
  if (version > newest) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has schema version ", version,
                                                      ", this program knows up to ", newest,
                                                      ". Start a newer fusiond, or choose another state folder"));
  }
  if (version > 0 && version < newest) {
    const std::string backup = absl::StrCat(path, ".v", version, ".bak");
    unlink(backup.c_str());
    RETURN_IF_ERROR(Annotate(connection.Run("VACUUM INTO ?", {backup}), "backup before migration"));
  }
  for (int64_t i = version; i < newest; ++i) {
    absl::Status applied = connection.ExecScript(
        absl::StrCat("BEGIN IMMEDIATE;", migrations[i].sql, ";PRAGMA user_version=", i + 1, ";COMMIT;"));
    if (!applied.ok()) {
      (void)connection.ExecScript("ROLLBACK");
      return Annotate(applied, absl::StrCat("migration ", migrations[i].name));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion
