#include <algorithm>

#include "absl/strings/str_cat.h"
#include "db/stores/sqlite_store.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::Status SqliteStore::PutTasks(absl::Span<const TaskRow> tasks, const AcceptedRows& accepted) {
  if (tasks.empty() && accepted.measurements.empty() && accepted.comparisons.empty() && accepted.builds.empty()) {
    return absl::OkStatus();
  }
  return writer_->Write([&](Connection& db) -> absl::Status {
    int64_t last_fence = 0;
    for (const TaskRow& task : tasks) {
      RETURN_IF_ERROR(db.Run("DELETE FROM tasks WHERE key = ? AND id <> ?", {task.key, task.id}));
      RETURN_IF_ERROR(
          db.Run("INSERT OR REPLACE INTO tasks (id, key, kind, device_kind, requirement, description, payload_digest, "
                 "payload_bytes, timeout_ms, threads, state, attempts, fence, worker, evidence, "
                 "created_ms, updated_ms) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                 {task.id, task.key, static_cast<int64_t>(task.kind), task.device_kind, task.requirement,
                  task.description, task.payload_digest, task.payload_bytes, task.timeout_ms, int64_t{task.threads},
                  static_cast<int64_t>(task.state), int64_t{task.attempts}, task.fence, task.worker, task.evidence,
                  task.created_ms, task.updated_ms}));
      last_fence = std::max(last_fence, task.fence);
    }
    if (last_fence > 0) {
      RETURN_IF_ERROR(db.Run("UPDATE counters SET value = ?1 WHERE name = 'fence' AND value < ?1", {last_fence}));
    }
    return InsertAccepted(db, accepted);
  });
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
  return QueryTasks("WHERE state IN (1, 2) ORDER BY created_ms", {});
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

absl::Status SqliteStore::CancelUnfinishedTasks() {
  return writer_->Write([](Connection& db) { return db.Run("UPDATE tasks SET state = 5 WHERE state IN (1, 2)"); });
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
