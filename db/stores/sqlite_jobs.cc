#include <algorithm>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "db/stores/sqlite_store.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::Status InsertResult(Connection& db, const ResultRow& result) {
  return db.Run(
      "INSERT INTO results (key, bundle_digest, bundle_bytes, account, created_ms, checks) VALUES (?,?,?,?,?,?) "
      "ON CONFLICT (key) DO UPDATE SET bundle_digest=excluded.bundle_digest, bundle_bytes=excluded.bundle_bytes, "
      "account=excluded.account, created_ms=excluded.created_ms, checks=excluded.checks",
      {result.key, result.bundle_digest, result.bundle_bytes, Bytes{result.account}, result.created_ms,
       Bytes{result.checks}});
}

namespace {

// Once for each model, however often it is submitted.
absl::Status InsertModel(Connection& db, const JobRow& job) {
  bool known = job.model.empty();
  RETURN_IF_ERROR(
      db.Query("SELECT 1 FROM model_blobs WHERE model = ? LIMIT 1", {job.model}, [&](const SqlRow&) { known = true; }));
  for (size_t i = 0; i < job.model_blobs.size() && !known; ++i) {
    RETURN_IF_ERROR(db.Run("INSERT INTO model_blobs (model, digest) VALUES (?,?) ON CONFLICT DO NOTHING",
                           {job.model, job.model_blobs[i]}));
  }
  return absl::OkStatus();
}

int64_t Int(JobPhase phase) { return static_cast<int64_t>(phase); }

}  // namespace

absl::Status InsertEvent(Connection& db, const std::string& job_id, const std::string& event) {
  return db.Run(
      "INSERT INTO job_events (job_id, seq, event) VALUES "
      "(?1, (SELECT COALESCE(MAX(seq), 0) + 1 FROM job_events WHERE job_id = ?1), ?2)",
      {job_id, Bytes{event}});
}

absl::StatusOr<std::string> SqliteStore::InsertJob(const JobRow& job, const std::string& first_event) {
  std::string id;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    id = job.id;
    if (!job.request_id.empty()) {
      bool known = false;
      RETURN_IF_ERROR(
          db.Query("SELECT 1 FROM jobs WHERE owner = ?1 AND request_id = ?2 AND request_id <> '' UNION ALL "
                   "SELECT 1 FROM joined_submissions WHERE owner = ?1 AND request_id = ?2 AND request_id <> ''",
                   {job.owner, job.request_id}, [&](const SqlRow&) { known = true; }));
      if (known) return absl::AlreadyExistsError(absl::StrCat("request ", job.request_id, " was submitted before"));
    }
    RETURN_IF_ERROR(db.Query("SELECT id FROM jobs WHERE key = ? AND state IN (1, 2)", {job.key},
                             [&](const SqlRow& row) { id = row.Text(0); }));
    if (id != job.id) {
      return db.Run(
          "INSERT INTO joined_submissions (id, job_id, model_name, client_id, created_ms, owner, priority, request_id) "
          "VALUES (?,?,?,?,?,?,?,?)",
          {job.id, id, job.model_name, job.client_id, job.created_ms, job.owner, int64_t{job.priority},
           job.request_id});
    }
    RETURN_IF_ERROR(
        db.Run("INSERT INTO jobs (id, key, model_name, target, client_id, request, state, created_ms, started_ms, "
               "finished_ms, account, bundle_digest, bundle_bytes, checks, owner, priority, request_id, model) VALUES "
               "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
               {job.id, job.key, job.model_name, job.target, job.client_id, Bytes{job.request}, Int(job.state),
                job.created_ms, job.started_ms, job.finished_ms, Bytes{job.account}, job.bundle_digest,
                job.bundle_bytes, Bytes{job.checks}, job.owner, int64_t{job.priority}, job.request_id, job.model}));
    RETURN_IF_ERROR(InsertModel(db, job));
    return InsertEvent(db, job.id, first_event);
  }));
  return id;
}

absl::Status SqliteStore::FinishJob(const JobRow& job, const std::string& last_event,
                                    const std::optional<ResultRow>& result) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(
        db.Run("UPDATE jobs SET state = ?, finished_ms = ?, account = ?, bundle_digest = ?, bundle_bytes = ?, "
               "error_code = ?, error_message = ?, checks = ?, claimant = '', lease_until_ms = 0 WHERE id = ? AND "
               "state IN (1, 2) AND claimant = ? AND fence = ?",
               {Int(job.state), job.finished_ms, Bytes{job.account}, job.bundle_digest, job.bundle_bytes,
                int64_t{job.error_code}, job.error_message, Bytes{job.checks}, job.id, job.claimant, job.fence}));
    if (db.changed_rows() != 1) {
      return absl::FailedPreconditionError(absl::StrCat("job ", job.id, " is unknown, already final, or another's"));
    }
    RETURN_IF_ERROR(InsertEvent(db, job.id, last_event));
    if (!result.has_value()) return absl::OkStatus();
    return InsertResult(db, *result);
  });
}

absl::StatusOr<SqliteStore::Leaving> SqliteStore::LeaveJob(const std::string& submission_id, int64_t now_ms,
                                                           const std::string& cancelled, int error_code,
                                                           const std::string& error_message) {
  Leaving leaving;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    leaving = {};
    std::string job_id = submission_id;
    RETURN_IF_ERROR(db.Query("SELECT job_id FROM joined_submissions WHERE id = ?", {submission_id},
                             [&](const SqlRow& row) { job_id = row.Text(0); }));
    const std::string next_seq = "(SELECT COALESCE(MAX(seq), 0) + 1 FROM job_events WHERE job_id = ?2)";
    const std::string in_flight = "EXISTS (SELECT 1 FROM jobs WHERE id = ?2 AND state IN (1, 2))";
    RETURN_IF_ERROR(db.Run(
        absl::StrCat("UPDATE ", job_id == submission_id ? "jobs" : "joined_submissions",
                     " SET left_ms = ?3, left_seq = ", next_seq, " WHERE id = ?1 AND left_ms = 0 AND ", in_flight),
        {submission_id, job_id, now_ms}));
    leaving.left = db.changed_rows() == 1;
    if (!leaving.left) return absl::OkStatus();
    RETURN_IF_ERROR(
        db.Run("UPDATE jobs SET state = 5, finished_ms = ?, error_code = ?, error_message = ?, claimant = '', "
               "lease_until_ms = 0 WHERE id = ? AND left_ms > 0 AND "
               "NOT EXISTS (SELECT 1 FROM joined_submissions WHERE job_id = jobs.id AND left_ms = 0)",
               {now_ms, int64_t{error_code}, error_message, job_id}));
    leaving.ended = db.changed_rows() == 1;
    return leaving.ended ? InsertEvent(db, job_id, cancelled) : absl::OkStatus();
  }));
  return leaving;
}

namespace {

// The columns of a job after those of its submission: id, model_name, client_id, created_ms, left_ms, left_seq, owner.
constexpr char kJobColumns[] =
    ", jobs.id, jobs.key, jobs.target, jobs.request, jobs.state, jobs.started_ms, jobs.finished_ms, jobs.account, "
    "jobs.bundle_digest, jobs.bundle_bytes, jobs.error_code, jobs.error_message, jobs.checks, jobs.attempts, (SELECT "
    "COALESCE(MAX(seq), 0) FROM job_events WHERE job_id = jobs.id), jobs.early_digest, jobs.early_bytes, "
    "jobs.early_key, jobs.number, MAX(CASE jobs.left_ms WHEN 0 THEN jobs.priority ELSE -1000000 END, COALESCE((SELECT "
    "MAX(priority) FROM joined_submissions WHERE job_id = jobs.id AND left_ms = 0), -1000000)), jobs.priority, "
    "jobs.pinned, jobs.claimant, jobs.fence, (SELECT group_concat('x' || hex(owner)) FROM (SELECT owner FROM "
    "joined_submissions WHERE job_id = jobs.id AND left_ms = 0 UNION SELECT jobs.owner WHERE jobs.left_ms = 0)) ";

// Reads the last of them: names may hold any character.
std::vector<std::string> OwnersOf(const std::string& text) {
  std::vector<std::string> owners;
  for (const absl::string_view name : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    owners.push_back(absl::HexStringToBytes(name.substr(1)));
  }
  std::sort(owners.begin(), owners.end());
  return owners;
}

JobRow ToJob(const SqlRow& row) {
  JobRow job;
  job.id = row.Text(0), job.model_name = row.Text(1), job.client_id = row.Text(2), job.created_ms = row.Int(3);
  job.left_seq = row.Int(5), job.owner = row.Text(6);
  job.runs_as = row.Text(7), job.key = row.Text(8), job.target = row.Text(9), job.request = row.Text(10);
  job.state = static_cast<JobPhase>(row.Int(11));
  job.started_ms = row.Int(12), job.finished_ms = row.Int(13);
  job.account = row.Text(14), job.bundle_digest = row.Text(15), job.bundle_bytes = row.Int(16);
  job.error_code = static_cast<int>(row.Int(17)), job.error_message = row.Text(18);
  job.checks = row.Text(19);
  job.attempts = static_cast<int>(row.Int(20));
  job.last_seq = row.Int(21);
  job.early_digest = row.Text(22), job.early_bytes = row.Int(23), job.early_key = row.Text(24);
  job.number = row.Int(25);
  const int64_t best = row.Int(26);
  job.priority = static_cast<int>(best > -1000000 ? best : row.Int(27));  // all have left: as it was submitted
  job.pinned = row.Int(28) != 0;
  job.claimant = row.Text(29), job.fence = row.Int(30);
  job.owners = OwnersOf(row.Text(31));
  return job;
}

// The row as a client sees it that has left the job.
void Leave(int64_t left_ms, JobRow* job) {
  job->state = JobPhase::kCancelled;
  job->finished_ms = left_ms;
  job->last_seq = job->left_seq;
  job->account.clear(), job->checks.clear(), job->bundle_digest.clear(), job->bundle_bytes = 0;
  job->early_digest.clear(), job->early_key.clear(), job->early_bytes = 0;
  job->error_code = static_cast<int>(absl::StatusCode::kCancelled), job->error_message = "cancelled";
}

}  // namespace

absl::StatusOr<std::vector<JobRow>> SqliteStore::QueryJobs(const std::string& tail,
                                                           const std::vector<SqlValue>& values) {
  std::vector<JobRow> jobs;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(absl::StrCat("SELECT id, model_name, client_id, created_ms, left_ms, left_seq, owner", kJobColumns,
                                 "FROM jobs ", tail),
                    values, [&](const SqlRow& row) { jobs.push_back(ToJob(row)); });
  }));
  return jobs;
}

absl::StatusOr<std::vector<JobRow>> SqliteStore::QuerySubmissions(bool joined, const std::string& tail,
                                                                  const std::vector<SqlValue>& values) {
  const std::string s = joined ? "joined_submissions" : "jobs";
  std::vector<JobRow> jobs;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(absl::StrCat("SELECT ", s, ".id, ", s, ".model_name, ", s, ".client_id, ", s, ".created_ms, ", s,
                                 ".left_ms, ", s, ".left_seq, ", s, ".owner", kJobColumns, "FROM ", s,
                                 joined ? " JOIN jobs ON jobs.id = joined_submissions.job_id " : " ", tail),
                    values, [&](const SqlRow& row) {
                      JobRow job = ToJob(row);
                      if (row.Int(4) > 0) Leave(row.Int(4), &job);
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

absl::StatusOr<JobRow> SqliteStore::FindSubmission(const std::string& id) {
  ASSIGN_OR_RETURN(std::vector<JobRow> jobs, QuerySubmissions(false, "WHERE jobs.id = ?", {id}));
  if (jobs.empty()) {
    ASSIGN_OR_RETURN(jobs, QuerySubmissions(true, "WHERE joined_submissions.id = ?", {id}));
  }
  if (jobs.empty()) return absl::NotFoundError(absl::StrCat("no job '", id, "'"));
  return std::move(jobs.front());
}

absl::StatusOr<JobRow> SqliteStore::FindRequest(const std::string& owner, const std::string& request_id) {
  for (const bool joined : {false, true}) {
    const std::string table = joined ? "joined_submissions" : "jobs";
    ASSIGN_OR_RETURN(std::vector<JobRow> jobs,
                     QuerySubmissions(joined,
                                      absl::StrCat("WHERE ", table, ".owner = ? AND ", table, ".request_id = ? AND ",
                                                   table, ".request_id <> ''"),
                                      {owner, request_id}));
    if (!jobs.empty()) return std::move(jobs.front());
  }
  return absl::NotFoundError(absl::StrCat("no request '", request_id, "'"));
}

absl::Status SqliteStore::PinJob(const std::string& submission_id, bool pinned) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(db.Run(
        "UPDATE jobs SET pinned = ?2 WHERE id = COALESCE((SELECT job_id FROM joined_submissions WHERE id = ?1), ?1)",
        {submission_id, int64_t{pinned}}));
    return db.changed_rows() == 1 ? absl::OkStatus()
                                  : absl::NotFoundError(absl::StrCat("no job '", submission_id, "'"));
  });
}

absl::StatusOr<JobPage> SqliteStore::PageOfJobs(int limit, const std::optional<std::string>& owner,
                                                const JobCursor& cursor) {
  const auto newest = [&](bool joined, const std::string& behind, const std::string& order,
                          std::vector<SqlValue> values) {
    std::string where = absl::StrCat("WHERE ", behind);
    if (owner.has_value()) {
      absl::StrAppend(&where, " AND ", joined ? "joined_submissions" : "jobs", ".owner = ?");
      values.emplace_back(*owner);
    }
    values.emplace_back(int64_t{limit} + 1);
    return QuerySubmissions(joined, absl::StrCat(where, " ORDER BY ", order, " LIMIT ?"), values);
  };
  ASSIGN_OR_RETURN(std::vector<JobRow> made,
                   newest(false, "jobs.number < ?", "jobs.number DESC", {cursor.before_number}));
  ASSIGN_OR_RETURN(
      std::vector<JobRow> joined,
      newest(true, "(joined_submissions.created_ms, joined_submissions.id) < (?, ?)",
             "joined_submissions.created_ms DESC, joined_submissions.id DESC", {cursor.joined_ms, cursor.joined_id}));
  JobPage page;
  // A kind of which the page takes none begins with the row that is its first now: those that come later are newer.
  JobCursor next = cursor;
  next.before_number = std::min(next.before_number, made.empty() ? int64_t{0} : made.front().number + 1);
  if (joined.empty()) {
    next.joined_ms = std::min<int64_t>(next.joined_ms, 0);
  } else if (next.joined_ms == std::numeric_limits<int64_t>::max()) {
    next.joined_ms = joined.front().created_ms, next.joined_id = joined.front().id + " ";
  }
  auto a = made.begin();
  auto b = joined.begin();
  while (page.jobs.size() < static_cast<size_t>(limit) && (a != made.end() || b != joined.end())) {
    const bool take_joined = a == made.end() || (b != joined.end() && b->created_ms > a->created_ms);
    if (take_joined) {
      next.joined_ms = b->created_ms, next.joined_id = b->id;
      page.jobs.push_back(std::move(*b++));
    } else {
      next.before_number = a->number;
      page.jobs.push_back(std::move(*a++));
    }
  }
  if (a != made.end() || b != joined.end()) page.next = next;
  return page;
}

absl::StatusOr<std::vector<JobRow>> SqliteStore::UnfinishedJobs() {
  // By "number" alone SQLite would read the table in that order instead of the index of jobs in flight.
  return QueryJobs("WHERE state IN (1, 2) ORDER BY +number", {});
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
