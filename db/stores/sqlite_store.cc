#include "db/stores/sqlite_store.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "db/sqlite/migrator.h"
#include "db/sqlite/quick_check.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path, SqliteStoreOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Connection::Open(path, Connection::Mode::kReadWrite));
  ASSIGN_OR_RETURN(const bool checked, Migrate(*connection, path, EmbeddedMigrations(), options.most_checked_bytes));
  connection->set_on_statement(options.on_statement);
  std::function<void(const absl::Status&)> on_damage;
  if (options.on_damage) {
    on_damage = [path, told = std::move(options.on_damage)](const absl::Status& damage) {
      told(absl::DataLossError(absl::StrCat(path, " is damaged: ", damage.message(), ". ", kWhatToDoAboutDamage)));
    };
  }
  connection->set_on_damage(on_damage);
  auto writer = std::make_unique<Writer>(std::move(connection), std::move(options.on_commit),
                                         std::move(options.on_failed_sync), std::move(options.on_stored));
  return std::unique_ptr<Store>(new SqliteStore(path, std::move(writer), std::move(options.on_statement),
                                                std::move(on_damage), checked, std::move(options.clock)));
}

absl::Status SqliteStore::Read(const std::function<absl::Status(Connection&)>& read) {
  std::unique_ptr<Connection> connection;
  {
    absl::MutexLock lock(&mutex_);
    if (!idle_readers_.empty()) {
      connection = std::move(idle_readers_.back());
      idle_readers_.pop_back();
    }
  }
  if (connection == nullptr) {
    ASSIGN_OR_RETURN(connection, Connection::Open(path_, Connection::Mode::kReadOnly));
    connection->set_on_statement(on_statement_);
    connection->set_on_damage(on_damage_);
  }
  RETURN_IF_ERROR(connection->Run("BEGIN"));
  absl::Status status = read(*connection);
  absl::Status ended = connection->Run("COMMIT");
  if (!ended.ok()) return status.ok() ? ended : status;  // do not reuse a connection in an unknown state
  absl::MutexLock lock(&mutex_);
  idle_readers_.push_back(std::move(connection));
  return status;
}

absl::Status SqliteStore::TryToStore() {
  // SQLite writes no page for a row that stays as it is, but for this one.
  return writer_->Write([](Connection& db) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
    return db.Run(absl::StrCat("PRAGMA user_version = ", version));
  });
}

absl::Status SqliteStore::PutWorker(const WorkerRow& worker) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    if (!worker.fingerprint.empty()) {
      RETURN_IF_ERROR(db.Run(
          "INSERT INTO devices (fingerprint, model_json, time_ms, source) SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS "
          "(SELECT 1 FROM drained_workers WHERE name = ?4 AND quarantined = 1 AND ?4 <> '') ON CONFLICT (fingerprint) "
          "DO "
          "UPDATE SET model_json=excluded.model_json, time_ms=excluded.time_ms, source='' WHERE devices.source <> '' "
          "AND "
          "excluded.source = ''",
          {worker.fingerprint, worker.device_model_json, worker.seen_ms, worker.source}));
    }
    return db.Run(
        "INSERT INTO workers (id, name, device_kind, fingerprint, device_model_json, seen_ms, source) VALUES "
        "(?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET name=excluded.name, device_kind=excluded.device_kind, "
        "fingerprint=excluded.fingerprint, device_model_json=excluded.device_model_json, seen_ms=excluded.seen_ms, "
        "source=excluded.source",
        {worker.id, worker.name, worker.device_kind, worker.fingerprint, worker.device_model_json, worker.seen_ms,
         worker.source});
  });
}

absl::StatusOr<std::optional<WorkerRow>> SqliteStore::QueryWorker(const std::string& tail, const std::string& value) {
  std::optional<WorkerRow> found;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(
        absl::StrCat("SELECT id, name, device_kind, fingerprint, device_model_json, seen_ms FROM workers ", tail),
        {value}, [&](const SqlRow& row) {
          found = WorkerRow{row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4), row.Int(5)};
        });
  }));
  return found;
}

absl::StatusOr<std::optional<WorkerRow>> SqliteStore::FindWorker(const std::string& id) {
  return QueryWorker("WHERE id = ?", id);
}

absl::StatusOr<std::optional<WorkerRow>> SqliteStore::LatestWorker(const std::string& device_kind) {
  return QueryWorker("WHERE device_kind = ? ORDER BY seen_ms DESC LIMIT 1", device_kind);
}

namespace {

// The rows of a quarantined source up to the last one that another worker confirmed still count. Measurements of whole
// plans are confirmed by nobody.
absl::Status QuarantineRows(Connection& db, const std::string& source) {
  for (const char* table : {"measurements", "plan_comparisons"}) {
    RETURN_IF_ERROR(db.Run(
        absl::StrCat("UPDATE ", table, " SET quarantined = 1 WHERE source = ?1 AND source <> '' AND (standing = ",
                     static_cast<int>(Standing::kImported), " OR fence > (SELECT COALESCE(MAX(fence), 0) FROM ", table,
                     " WHERE source = ?1 AND source <> '' AND standing = ", static_cast<int>(Standing::kConfirmed),
                     "))"),
        {source}));
    RETURN_IF_ERROR(
        db.Run(absl::StrCat("UPDATE ", table, " SET quarantined = 1 WHERE source = 'imported/' || ?1 AND source <> ''"),
               {source}));
  }
  return db.Run("UPDATE plan_measurements SET quarantined = 1 WHERE source IN (?1, 'imported/' || ?1) AND source <> ''",
                {source});
}

// The rates of its devices are those of another worker from now on: of one that is believed, else of the latest.
absl::Status QuarantineRates(Connection& db, const std::string& source) {
  const std::string another =
      "FROM workers WHERE workers.fingerprint = devices.fingerprint AND NOT EXISTS (SELECT 1 FROM drained_workers "
      "WHERE "
      "drained_workers.name = workers.source AND drained_workers.quarantined = 1 AND workers.source <> '')";
  RETURN_IF_ERROR(db.Run(
      absl::StrCat("UPDATE devices SET (model_json, time_ms, source) = (SELECT device_model_json, seen_ms, source ",
                   another,
                   " ORDER BY source <> '', seen_ms DESC LIMIT 1) WHERE source = ?1 AND source <> '' AND EXISTS ",
                   "(SELECT 1 ", another, ")"),
      {source}));
  return db.Run("DELETE FROM devices WHERE source = ?1 AND source <> ''", {source});
}

absl::Status ReleaseRows(Connection& db, const std::string& source) {
  for (const char* table : {"measurements", "plan_comparisons", "plan_measurements"}) {
    // An imported row stays where it is quarantined under both names.
    RETURN_IF_ERROR(db.Run(
        absl::StrCat("UPDATE ", table, " SET quarantined = 0 WHERE source IN (?1, 'imported/' || ?1) AND source <> '' ",
                     "AND NOT EXISTS (SELECT 1 FROM drained_workers WHERE drained_workers.quarantined = 1 AND ",
                     "(name = source OR 'imported/' || name = source))"),
        {source}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> IsQuarantined(Connection& db, const std::string& source) {
  bool found = false;
  if (source.empty()) return found;
  RETURN_IF_ERROR(db.Query(
      "SELECT 1 FROM drained_workers WHERE quarantined = 1 AND (name = ?1 OR 'imported/' || name = ?1) LIMIT 1",
      {source}, [&](const SqlRow&) { found = true; }));
  return found;
}

absl::Status KnowImportedSources(Connection& db, const std::set<std::string>& sources) {
  for (const std::string& source : sources) {
    if (source.empty()) continue;
    ASSIGN_OR_RETURN(const bool quarantined, IsQuarantined(db, source));
    if (quarantined) continue;
    RETURN_IF_ERROR(
        db.Run("INSERT INTO sources (source, strikes, in_a_row, batches, confirmed, caught, last, awaiting) VALUES "
               "(?,0,0,0,0,0,'','') ON CONFLICT DO NOTHING",
               {source}));
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::PutDrainedWorker(const DrainedWorkerRow& worker) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(db.Run(
        "INSERT OR REPLACE INTO drained_workers (name, reason, by, since_ms, from_ms, until_ms, quarantined) VALUES "
        "(?,?,?,?,?,?,?)",
        {worker.name, worker.reason, worker.by, worker.since_ms, worker.from_ms, worker.until_ms,
         int64_t{worker.quarantined}}));
    if (!worker.quarantined) return ReleaseRows(db, worker.name);
    RETURN_IF_ERROR(db.Run("DELETE FROM sources WHERE source = ?", {worker.name}));
    RETURN_IF_ERROR(QuarantineRows(db, worker.name));
    return QuarantineRates(db, worker.name);
  });
}

absl::Status SqliteStore::RemoveDrainedWorker(const std::string& name) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(
        db.Run("DELETE FROM sources WHERE source IN (SELECT name FROM drained_workers WHERE name = ? AND "
               "quarantined = 1)",
               {name}));
    RETURN_IF_ERROR(db.Run("DELETE FROM drained_workers WHERE name = ?", {name}));
    return ReleaseRows(db, name);
  });
}

absl::StatusOr<std::vector<DrainedWorkerRow>> SqliteStore::DrainedWorkers() {
  std::vector<DrainedWorkerRow> rows;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(
        "SELECT name, reason, by, since_ms, from_ms, until_ms, quarantined FROM drained_workers ORDER BY name", {},
        [&](const SqlRow& row) {
          rows.push_back({row.Text(0), row.Text(1), row.Text(2), row.Int(3), row.Int(4), row.Int(5), row.Int(6) != 0});
        });
  }));
  return rows;
}

absl::StatusOr<std::vector<SourceRow>> SqliteStore::Sources() {
  std::vector<SourceRow> rows;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(
        "SELECT source, strikes, in_a_row, batches, confirmed, caught, last, awaiting FROM sources ORDER BY source", {},
        [&](const SqlRow& row) {
          rows.push_back({row.Text(0), row.Int(1), row.Int(2), row.Int(3), row.Int(4), row.Int(5), row.Text(6),
                          absl::StrSplit(row.Text(7), '\n', absl::SkipEmpty())});
        });
  }));
  return rows;
}

absl::Status SqliteStore::PutBlobs(absl::Span<const BlobRow> blobs, const std::string& tenant) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    for (const BlobRow& blob : blobs) {
      RETURN_IF_ERROR(db.Run("INSERT INTO blobs (digest, size_bytes, created_ms) VALUES (?,?,?) ON CONFLICT DO NOTHING",
                             {blob.digest, blob.size_bytes, blob.created_ms}));
      RETURN_IF_ERROR(db.Run("INSERT INTO tenant_blobs (digest, tenant) VALUES (?,?) ON CONFLICT DO NOTHING",
                             {blob.digest, tenant}));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<bool>> SqliteStore::AreOfTenant(const std::string& tenant,
                                                           absl::Span<const std::string> digests) {
  std::vector<bool> are(digests.size(), false);
  RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    for (size_t i = 0; i < digests.size(); ++i) {
      RETURN_IF_ERROR(db.Query("SELECT 1 FROM tenant_blobs WHERE digest = ? AND tenant = ?", {digests[i], tenant},
                               [&](const SqlRow&) { are[i] = true; }));
    }
    return absl::OkStatus();
  }));
  return are;
}

absl::StatusOr<std::vector<std::optional<int64_t>>> SqliteStore::BlobSizes(absl::Span<const std::string> digests) {
  std::vector<std::optional<int64_t>> sizes(digests.size());
  RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    for (size_t i = 0; i < digests.size(); ++i) {
      RETURN_IF_ERROR(db.Query("SELECT size_bytes FROM blobs WHERE digest = ?", {digests[i]},
                               [&](const SqlRow& row) { sizes[i] = row.Int(0); }));
    }
    return absl::OkStatus();
  }));
  return sizes;
}

}  // namespace fusion
