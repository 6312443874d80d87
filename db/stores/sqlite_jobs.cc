#include "absl/strings/str_cat.h"
#include "db/stores/sqlite_store.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

absl::Status InsertEvent(Connection& db, const std::string& job_id, const std::string& event) {
  return db.Run(
      "INSERT INTO job_events (job_id, seq, event) VALUES "
      "(?1, (SELECT COALESCE(MAX(seq), 0) + 1 FROM job_events WHERE job_id = ?1), ?2)",
      {job_id, Bytes{event}});
}

absl::Status InsertResult(Connection& db, const ResultRow& result) {
  return db.Run(
      "INSERT INTO results (key, bundle_digest, bundle_bytes, account, created_ms, checks) VALUES (?,?,?,?,?,?) "
      "ON CONFLICT (key) DO UPDATE SET bundle_digest=excluded.bundle_digest, bundle_bytes=excluded.bundle_bytes, "
      "account=excluded.account, created_ms=excluded.created_ms, checks=excluded.checks",
      {result.key, result.bundle_digest, result.bundle_bytes, Bytes{result.account}, result.created_ms,
       Bytes{result.checks}});
}

int64_t Int(JobPhase phase) { return static_cast<int64_t>(phase); }

}  // namespace

absl::StatusOr<std::string> SqliteStore::InsertJob(const JobRow& job, const std::string& first_event) {
  std::string id = job.id;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(db.Query("SELECT id FROM jobs WHERE key = ? AND state IN (1, 2)", {job.key},
                             [&](const SqlRow& row) { id = row.Text(0); }));
    if (id != job.id) return absl::OkStatus();
    RETURN_IF_ERROR(db.Run(
        "INSERT INTO jobs (id, key, model_name, target, client_id, request, state, created_ms, started_ms, "
        "finished_ms, account, bundle_digest, bundle_bytes, checks) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        {job.id, job.key, job.model_name, job.target, job.client_id, Bytes{job.request}, Int(job.state), job.created_ms,
         job.started_ms, job.finished_ms, Bytes{job.account}, job.bundle_digest, job.bundle_bytes, Bytes{job.checks}}));
    return InsertEvent(db, job.id, first_event);
  }));
  return id;
}

absl::Status SqliteStore::StartJob(const std::string& id, int64_t now_ms) {
  return writer_->Write([&](Connection& db) {
    return db.Run("UPDATE jobs SET state = 2, started_ms = ?, attempts = attempts + 1 WHERE id = ? AND state IN (1, 2)",
                  {now_ms, id});
  });
}

absl::Status SqliteStore::GiveJobBack(const std::string& id) {
  return writer_->Write([&](Connection& db) {
    return db.Run("UPDATE jobs SET state = 1, attempts = MAX(attempts - 1, 0) WHERE id = ? AND state = 2", {id});
  });
}

absl::Status SqliteStore::FinishJob(const JobRow& job, const std::string& last_event,
                                    const std::optional<ResultRow>& result) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(
        db.Run("UPDATE jobs SET state = ?, finished_ms = ?, account = ?, bundle_digest = ?, bundle_bytes = ?, "
               "error_code = ?, error_message = ?, checks = ? WHERE id = ? AND state IN (1, 2)",
               {Int(job.state), job.finished_ms, Bytes{job.account}, job.bundle_digest, job.bundle_bytes,
                int64_t{job.error_code}, job.error_message, Bytes{job.checks}, job.id}));
    if (db.changed_rows() != 1) {
      return absl::FailedPreconditionError(absl::StrCat("job ", job.id, " is unknown or already final"));
    }
    RETURN_IF_ERROR(InsertEvent(db, job.id, last_event));
    if (!result.has_value()) return absl::OkStatus();
    return InsertResult(db, *result);
  });
}

absl::Status SqliteStore::AppendJobEvent(const std::string& job_id, const std::string& event) {
  return writer_->Write([&](Connection& db) { return InsertEvent(db, job_id, event); });
}

absl::StatusOr<std::vector<JobRow>> SqliteStore::QueryJobs(const std::string& tail,
                                                           const std::vector<SqlValue>& values) {
  std::vector<JobRow> jobs;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(
        absl::StrCat("SELECT id, key, model_name, target, client_id, request, state, created_ms, started_ms, "
                     "finished_ms, account, bundle_digest, bundle_bytes, error_code, error_message, checks, attempts, "
                     "(SELECT COALESCE(MAX(seq), 0) FROM job_events WHERE job_id = jobs.id) FROM jobs ",
                     tail),
        values, [&](const SqlRow& row) {
          JobRow job;
          job.id = row.Text(0), job.key = row.Text(1), job.model_name = row.Text(2), job.target = row.Text(3);
          job.client_id = row.Text(4), job.request = row.Text(5);
          job.state = static_cast<JobPhase>(row.Int(6));
          job.created_ms = row.Int(7), job.started_ms = row.Int(8), job.finished_ms = row.Int(9);
          job.account = row.Text(10), job.bundle_digest = row.Text(11), job.bundle_bytes = row.Int(12);
          job.error_code = static_cast<int>(row.Int(13)), job.error_message = row.Text(14);
          job.checks = row.Text(15);
          job.attempts = static_cast<int>(row.Int(16));
          job.last_seq = row.Int(17);
          jobs.push_back(std::move(job));
        });
  }));
  return jobs;
}

absl::StatusOr<JobRow> SqliteStore::GetJob(const std::string& id) {
  ASSIGN_OR_RETURN(std::vector<JobRow> jobs, QueryJobs("WHERE id = ?", {id}));
  if (jobs.empty()) return absl::NotFoundError(absl::StrCat("no job '", id, "'"));
  return std::move(jobs.front());
}

absl::StatusOr<std::vector<JobRow>> SqliteStore::ListJobs(int limit) {
  return QueryJobs("ORDER BY number DESC LIMIT ?", {int64_t{limit}});
}

absl::StatusOr<std::vector<JobRow>> SqliteStore::UnfinishedJobs() {
  return QueryJobs("WHERE state IN (1, 2) ORDER BY number", {});
}

absl::StatusOr<std::vector<JobEventRow>> SqliteStore::JobEvents(const std::string& id, int64_t after_seq, int limit) {
  std::vector<JobEventRow> events;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query("SELECT seq, event FROM job_events WHERE job_id = ? AND seq > ? ORDER BY seq LIMIT ?",
                    {id, after_seq, int64_t{limit}}, [&](const SqlRow& row) {
                      events.push_back({row.Int(0), row.Text(1)});
                    });
  }));
  return events;
}

absl::StatusOr<std::optional<ResultRow>> SqliteStore::FindResult(const std::string& key) {
  std::optional<ResultRow> found;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query("SELECT key, bundle_digest, bundle_bytes, account, created_ms, checks FROM results WHERE key = ?",
                    {key}, [&](const SqlRow& row) {
                      found = ResultRow{row.Text(0), row.Text(1), row.Int(2), row.Text(3), row.Int(4), row.Text(5)};
                    });
  }));
  return found;
}

absl::Status SqliteStore::PutResult(const ResultRow& result) {
  return writer_->Write([&](Connection& db) { return InsertResult(db, result); });
}

}  // namespace fusion
