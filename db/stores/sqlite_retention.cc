#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "db/sqlite/quick_check.h"
#include "db/stores/sqlite_store.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Removes the rows of `table` whose keys `chosen` selects, and counts them.
absl::Status Remove(Connection& db, const std::string& table, const std::string& key, const std::string& chosen,
                    const std::vector<SqlValue>& values, int64_t* removed) {
  RETURN_IF_ERROR(db.Run(absl::StrCat("DELETE FROM ", table, " WHERE ", key, " IN (", chosen, ")"), values));
  *removed = db.changed_rows();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExpiredRows> SqliteStore::ExpireRows(const Cutoffs& before, int limit) {
  ExpiredRows expired;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    const int64_t most = limit;
    RETURN_IF_ERROR(Remove(db, "jobs", "number",
                           "SELECT number FROM jobs WHERE state > 2 AND pinned = 0 AND finished_ms < ? "
                           "ORDER BY finished_ms LIMIT ?",
                           {before.jobs_ms, most}, &expired.jobs));
    RETURN_IF_ERROR(Remove(db, "results", "key",
                           "SELECT key FROM results WHERE created_ms < ? AND "
                           "NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.key = results.key) LIMIT ?",
                           {before.jobs_ms, most}, &expired.results));
    RETURN_IF_ERROR(Remove(db, "tasks", "id",
                           "SELECT id FROM tasks WHERE state > 2 AND updated_ms < ? ORDER BY updated_ms LIMIT ?",
                           {before.tasks_ms, most}, &expired.tasks));
    return Remove(db, "builds", "(key, toolchain, builder)",
                  "SELECT key, toolchain, builder FROM builds WHERE created_ms < ? LIMIT ?", {before.builds_ms, most},
                  &expired.builds);
  }));
  return expired;
}

absl::StatusOr<ExpiredRows> SqliteStore::ExpireOldestJobs(int limit) {
  ExpiredRows expired;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t all, db.QueryInt("SELECT COUNT(*) FROM jobs WHERE state > 2 AND pinned = 0"));
    std::vector<std::pair<int64_t, std::string>> oldest;  // number and key
    RETURN_IF_ERROR(db.Query("SELECT number, key FROM jobs WHERE state > 2 AND pinned = 0 ORDER BY finished_ms LIMIT ?",
                             {std::clamp<int64_t>(all / 50, 1, limit)},
                             [&](const SqlRow& row) { oldest.emplace_back(row.Int(0), row.Text(1)); }));
    expired = {};
    for (const auto& [number, key] : oldest) {
      RETURN_IF_ERROR(db.Run("DELETE FROM jobs WHERE number = ?", {number}));
      ++expired.jobs;
      RETURN_IF_ERROR(
          db.Run("DELETE FROM results WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE key = ?1)", {key}));
      expired.results += db.changed_rows();
    }
    return absl::OkStatus();
  }));
  return expired;
}

absl::Status SqliteStore::ScanReferences(
    const std::function<void(const Reference&)>& on_reference,
    const std::function<void(const std::string&, const std::string&)>& on_request) {
  struct Source {
    ReferenceKind kind;
    const char* sql;
  };
  // One row for each digest; the owner's name is for people.
  constexpr Source kSources[] = {
      {ReferenceKind::kBundle, "SELECT bundle_digest, id FROM jobs WHERE bundle_digest <> ''"},
      {ReferenceKind::kBundle, "SELECT early_digest, id FROM jobs WHERE early_digest <> ''"},
      {ReferenceKind::kResult, "SELECT bundle_digest, key FROM results"},
      {ReferenceKind::kBinary, "SELECT binary_digest, key FROM builds"},
      {ReferenceKind::kModel,
       "SELECT digest, COALESCE((SELECT id FROM jobs WHERE jobs.model = model_blobs.model AND jobs.model <> '' LIMIT "
       "1), "
       "'') FROM model_blobs"},
  };
  return Read([&](Connection& db) -> absl::Status {
    for (const Source& source : kSources) {
      RETURN_IF_ERROR(db.Query(source.sql, {}, [&](const SqlRow& row) {
        on_reference({source.kind, row.Text(0), row.Text(1)});
      }));
    }
    return db.Query("SELECT id, request FROM jobs WHERE model = ''", {},
                    [&](const SqlRow& row) { on_request(row.Text(0), row.Text(1)); });
  });
}

absl::StatusOr<std::vector<BlobRow>> SqliteStore::Blobs(const std::string& after, int limit) {
  std::vector<BlobRow> blobs;
  const absl::Status read = Read([&](Connection& db) {
    return db.Query("SELECT digest, size_bytes, created_ms FROM blobs WHERE digest > ? ORDER BY digest LIMIT ?",
                    {after, int64_t{limit}}, [&](const SqlRow& row) {
                      blobs.push_back({row.Text(0), row.Int(1), row.Int(2)});
                    });
  });
  if (!read.ok()) return read;
  return blobs;
}

absl::Status SqliteStore::RemoveBlobs(absl::Span<const std::string> digests) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    for (const std::string& digest : digests) {
      RETURN_IF_ERROR(db.Run("DELETE FROM blobs WHERE digest = ?", {digest}));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> SqliteStore::PruneMeasurements(const PruneFilter& filter, int limit) {
  int64_t removed = 0;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) {
    return Remove(db, "measurements", "id",
                  "SELECT id FROM measurements WHERE time_ms < ? AND (?2 = '' OR device_fingerprint = ?2) LIMIT ?",
                  {filter.before_ms, filter.device_fingerprint, int64_t{limit}}, &removed);
  }));
  return removed;
}

absl::StatusOr<std::vector<std::string>> SqliteStore::Faults() {
  std::vector<std::string> faults;
  const absl::Status read = Read([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(db.Query("PRAGMA integrity_check(100)", {}, [&](const SqlRow& row) {
      if (row.Text(0) != "ok") faults.push_back(row.Text(0));
    }));
    return db.Query("PRAGMA foreign_key_check", {}, [&](const SqlRow& row) {
      faults.push_back(absl::StrCat("a row of ", row.Text(0), " belongs to a row of ", row.Text(2), " that is gone"));
    });
  });
  if (!read.ok()) return read;
  return faults;
}

absl::Status SqliteStore::CheckTheRest(const std::function<bool()>& stop) {
  if (checked_) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Connection::Open(path_, Connection::Mode::kReadOnly));
  return QuickCheckWhileInUse(*connection, path_, stop);
}

absl::Status SqliteStore::BackUp(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Connection::Open(path_, Connection::Mode::kReadOnly));
  return connection->Run("VACUUM INTO ?", {path});
}

}  // namespace fusion
