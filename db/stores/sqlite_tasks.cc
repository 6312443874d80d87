#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "db/stores/sqlite_store.h"
#include "db/stores/task_claims.h"
#include "runtime/base/status_macros.h"

namespace fusion {

namespace {

// A transaction that makes calls: what TaskClaims says, in SQL.
struct TaskCaller {
  Connection& db;
  const int64_t now_ms;
  const absl::Time now;  // by the steady clock

  absl::StatusOr<TaskAnswer> operator()(const QueueTask& call) const;
  absl::StatusOr<TaskAnswer> operator()(const ClaimTask& call) const;
  absl::StatusOr<TaskAnswer> operator()(const RenewTask& call) const;
  absl::StatusOr<TaskAnswer> operator()(const CompleteTask& call) const;
  absl::StatusOr<TaskAnswer> operator()(const FailTask& call) const;
  absl::StatusOr<TaskAnswer> operator()(const NoteSource& call) const;

 private:
  // Changes the task if the claim holds.
  absl::StatusOr<TaskAnswer> Change(const TaskClaim& claim, const std::string& changes,
                                    std::vector<SqlValue> values) const {
    const bool nobodys = claim.worker.empty();
    values.insert(values.end(), {claim.task, claim.fence});
    if (!nobodys) values.emplace_back(claim.worker);
    RETURN_IF_ERROR(db.Run(absl::StrCat("UPDATE tasks SET ", changes, " WHERE id = ? AND fence = ? AND ",
                                        nobodys ? "state = 1" : "state = 2 AND worker = ?"),
                           values));
    return TaskAnswer{db.changed_rows() == 1};
  }
};

absl::StatusOr<TaskAnswer> TaskCaller::operator()(const QueueTask& call) const {
  const TaskRow& row = call.row;
  bool waits = false, in_flight = false;
  RETURN_IF_ERROR(
      db.Query("SELECT state = 1 AND id = ?1 AND key = ?2 FROM tasks WHERE (id = ?1 OR key = ?2) AND state < 3",
               {row.id, row.key}, [&](const SqlRow& found) {
                 in_flight = true;
                 waits = found.Int(0) != 0;
               }));
  if (in_flight && !waits) return TaskAnswer{};
  if (waits) {
    RETURN_IF_ERROR(db.Run("UPDATE tasks SET payload_digest = ?, payload_bytes = ?, updated_ms = ? WHERE id = ?",
                           {row.payload_digest, row.payload_bytes, now_ms, row.id}));
    return TaskAnswer{true};
  }
  RETURN_IF_ERROR(db.Run("DELETE FROM tasks WHERE id = ? OR key = ?", {row.id, row.key}));
  RETURN_IF_ERROR(
      db.Run("INSERT INTO tasks (id, key, kind, device_kind, requirement, description, payload_digest, payload_bytes, "
             "timeout_ms, threads, state, attempts, fence, worker, evidence, created_ms, updated_ms) VALUES "
             "(?,?,?,?,?,?,?,?,?,?,1,0,0,'','',?,?)",
             {row.id, row.key, static_cast<int64_t>(row.kind), row.device_kind, row.requirement, row.description,
              row.payload_digest, row.payload_bytes, row.timeout_ms, int64_t{row.threads}, row.created_ms, now_ms}));
  return TaskAnswer{true};
}

absl::StatusOr<TaskAnswer> TaskCaller::operator()(const ClaimTask& call) const {
  TaskAnswer answer;
  RETURN_IF_ERROR(db.Query(
      "UPDATE tasks SET state = 2, worker = ?2, attempts = attempts + 1, lease_until_ms = ?3, updated_ms = ?4, "
      "fence = (SELECT value + 1 FROM counters WHERE name = 'fence') WHERE id = ?5 AND (state = 1 OR state = 2 "
      "AND (lease_until_ms <= ?1 OR lease_until_ms > ?1 + ?6)) RETURNING fence",
      {absl::ToUnixMillis(now), call.worker, absl::ToUnixMillis(now + call.lease), now_ms, call.task,
       absl::ToInt64Milliseconds(kLongestLease)},
      [&](const SqlRow& row) {
        answer = {true, row.Int(0)};
      }));
  if (answer.held) RETURN_IF_ERROR(db.Run("UPDATE counters SET value = ? WHERE name = 'fence'", {answer.fence}));
  return answer;
}

absl::StatusOr<TaskAnswer> TaskCaller::operator()(const RenewTask& call) const {
  if (call.claim.worker.empty()) return TaskAnswer{};
  return Change(call.claim, "lease_until_ms = ?", {absl::ToUnixMillis(now + call.lease)});
}

absl::StatusOr<TaskAnswer> TaskCaller::operator()(const CompleteTask& call) const {
  ASSIGN_OR_RETURN(
      const TaskAnswer answer,
      Change(call.claim, "state = 3, worker = ?, lease_until_ms = 0, updated_ms = ?", {call.worker, now_ms}));
  if (answer.held) RETURN_IF_ERROR(InsertAccepted(db, call.rows));
  return answer;
}

absl::StatusOr<TaskAnswer> TaskCaller::operator()(const FailTask& call) const {
  return Change(call.claim,
                "state = ?, attempts = MAX(attempts - ?, 0), evidence = evidence || ?, lease_until_ms = 0, "
                "updated_ms = ?",
                {static_cast<int64_t>(call.then), int64_t{call.counts ? 0 : 1}, call.evidence, now_ms});
}

absl::StatusOr<TaskAnswer> TaskCaller::operator()(const NoteSource& call) const {
  const SourceRow& row = call.row;
  RETURN_IF_ERROR(
      db.Run("INSERT OR REPLACE INTO sources (source, strikes, in_a_row, batches, confirmed, caught, last, awaiting) "
             "VALUES (?,?,?,?,?,?,?,?)",
             {row.source, row.strikes, row.in_a_row, row.batches, row.confirmed, row.caught, row.last,
              absl::StrJoin(row.awaiting, "\n")}));
  return TaskAnswer{true};
}

}  // namespace

absl::StatusOr<std::vector<TaskAnswer>> SqliteStore::CallTasks(absl::Span<const TaskCall> calls, int64_t now_ms) {
  std::vector<TaskAnswer> answers;
  if (calls.empty()) return answers;
  for (const TaskCall& call : calls) RETURN_IF_ERROR(CheckCall(call));
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    const TaskCaller caller{db, now_ms, clock_()};
    answers.clear();
    for (const TaskCall& call : calls) {
      ASSIGN_OR_RETURN(const TaskAnswer answer, std::visit(caller, call));
      answers.push_back(answer);
    }
    return absl::OkStatus();
  }));
  return answers;
}

absl::StatusOr<std::vector<TaskRow>> SqliteStore::QueryTasks(const std::string& tail,
                                                             const std::vector<SqlValue>& values) {
  std::vector<TaskRow> tasks;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query(absl::StrCat("SELECT id, key, kind, device_kind, requirement, description, payload_digest, "
                                 "payload_bytes, timeout_ms, threads, state, attempts, fence, worker, evidence, "
                                 "created_ms, updated_ms FROM tasks ",
                                 tail),
                    values, [&](const SqlRow& row) {
                      TaskRow task;
                      task.id = row.Text(0), task.key = row.Text(1);
                      task.kind = static_cast<TaskType>(row.Int(2));
                      task.device_kind = row.Text(3), task.requirement = row.Text(4), task.description = row.Text(5);
                      task.payload_digest = row.Text(6), task.payload_bytes = row.Int(7);
                      task.timeout_ms = row.Int(8), task.threads = static_cast<int>(row.Int(9));
                      task.state = static_cast<TaskPhase>(row.Int(10));
                      task.attempts = static_cast<int>(row.Int(11)), task.fence = row.Int(12);
                      task.worker = row.Text(13), task.evidence = row.Text(14);
                      task.created_ms = row.Int(15), task.updated_ms = row.Int(16);
                      tasks.push_back(std::move(task));
                    });
  }));
  return tasks;
}

absl::StatusOr<std::optional<TaskRow>> SqliteStore::FindTask(const std::string& key) {
  ASSIGN_OR_RETURN(std::vector<TaskRow> tasks, QueryTasks("WHERE key = ?", {key}));
  if (tasks.empty()) return std::optional<TaskRow>();
  return std::optional<TaskRow>(std::move(tasks.front()));
}

absl::StatusOr<std::vector<TaskRow>> SqliteStore::UnfinishedTasks() {
  return QueryTasks("WHERE state IN (1, 2) ORDER BY rowid", {});
}

absl::StatusOr<int64_t> SqliteStore::LastFence() {
  std::optional<int64_t> fence;
  RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Query("SELECT value FROM counters WHERE name = 'fence'", {},
                    [&](const SqlRow& row) { fence = row.Int(0); });
  }));
  if (!fence.has_value()) return absl::DataLossError("the database has no counter of fences");
  return *fence;
}

absl::StatusOr<std::vector<std::vector<BuildRow>>> SqliteStore::FindBuilds(absl::Span<const std::string> keys) {
  std::vector<std::vector<BuildRow>> found(keys.size());
  RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    for (size_t i = 0; i < keys.size(); ++i) {
      RETURN_IF_ERROR(db.Query(
          "SELECT binary_digest, created_ms, toolchain, builder, trusted, reproduces FROM builds WHERE key = ? "
          "ORDER BY toolchain, builder",
          {keys[i]}, [&](const SqlRow& row) {
            found[i].push_back(
                {keys[i], row.Text(0), row.Int(1), row.Text(2), row.Text(3), row.Int(4) != 0, row.Int(5) != 0});
          }));
    }
    return absl::OkStatus();
  }));
  return found;
}

}  // namespace fusion
