// Tests what only the SQLite engine guarantees: acknowledged writes survive kill -9, and questions use indices.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "db/sqlite/connection.h"
#include "db/stores/store.h"
#include "db/stores/testing/add_rows.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

TEST(SqliteStore, AcknowledgedRowsSurviveKill) {
  const std::string path = ::testing::TempDir() + "killed.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  int acknowledged[2];
  ASSERT_EQ(pipe(acknowledged), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = OpenSqliteStore(path);
    if (!store.ok()) _exit(1);
    JobRow job;
    job.id = "j", job.key = "k";
    if (!(*store)->InsertJob(job, "e").ok()) _exit(1);
    for (int64_t n = 1;; ++n) {
      if (!(*store)->AppendJobEvent({"j"}, "e").ok()) _exit(1);
      if (write(acknowledged[1], &n, sizeof n) != sizeof n) _exit(1);
    }
  }
  close(acknowledged[1]);
  int64_t last = 0, n = 0;
  while (last < 40 && read(acknowledged[0], &n, sizeof n) == sizeof n) last = n;
  kill(child, SIGKILL);
  while (read(acknowledged[0], &n, sizeof n) == sizeof n) last = n;
  waitpid(child, nullptr, 0);

  auto store = OpenSqliteStore(path);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_GE(last, 40);
  EXPECT_EQ((*store)->UnfinishedJobs()->size(), 1u);
  const int64_t kept = (*store)->GetJob("j")->last_seq;
  EXPECT_GE(kept, last + 1);
  EXPECT_LE(kept, last + 2) << "at most the one in flight besides what was acknowledged";
}

TEST(SqliteStore, ALargeDatabaseIsCheckedWhileItIsInUse) {
  const std::string path = ::testing::TempDir() + "large.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  SqliteStoreOptions large;
  large.most_checked_bytes = 0;
  {
    const auto store = OpenSqliteStore(path, large).value();
    JobRow job;
    job.id = "j", job.key = "k", job.request = std::string(100000, 'r');
    ASSERT_TRUE(store->InsertJob(job, "e").ok());
    EXPECT_TRUE(store->CheckTheRest([] { return false; }).ok());
    EXPECT_EQ(store->CheckTheRest([] { return true; }).code(), absl::StatusCode::kCancelled);
  }
  {  // The pages that hold the request begin with the number of the next.
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
    int64_t damaged = 0;
    for (int64_t page = 0; page < bytes / 4096; ++page) {
      std::string content(4096, '\0');
      file.seekg(page * 4096);
      file.read(content.data(), 4096);
      if (content.substr(4) != std::string(4092, 'r')) continue;
      file.seekp(page * 4096);
      file << std::string(4, '\xff');
      ++damaged;
    }
    ASSERT_GT(damaged, 10);
  }
  EXPECT_EQ(OpenSqliteStore(path).status().code(), absl::StatusCode::kDataLoss) << "it is small";
  const auto store = OpenSqliteStore(path, large);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->CheckTheRest([] { return false; }).code(), absl::StatusCode::kDataLoss);
}

TEST(SqliteStore, TryingToStoreFailsWhereTheDiskTakesNothing) {
  const std::string path = ::testing::TempDir() + "refusing.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  const auto store = OpenSqliteStore(path).value();
  EXPECT_TRUE(store->TryToStore().ok());
  rlimit unlimited;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit nothing{1, unlimited.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &nothing), 0);
  const absl::Status refused = store->TryToStore();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  EXPECT_FALSE(refused.ok());
  EXPECT_TRUE(store->TryToStore().ok());
}

// A new store, and the statements that it prepares.
struct StatementRecorder {
  explicit StatementRecorder(const std::string& name) : path(::testing::TempDir() + name) {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
    SqliteStoreOptions options;
    options.on_statement = [this](const std::string& sql) {
      std::lock_guard<std::mutex> lock(mutex);
      statements.insert(sql);
    };
    store = OpenSqliteStore(path, options).value();
  }

  const std::string path;
  std::mutex mutex;
  std::set<std::string> statements;
  std::unique_ptr<Store> store;
};

// No statement that the server uses while it compiles may read all measurements. The statements are those that the
// store really prepares.
TEST(SqliteStore, NoQuestionScansTheMeasurements) {
  StatementRecorder recorder("plans.db");
  const auto& store = recorder.store;
  MeasurementRow row{"q", "m", "dev", "Conv", 1, 1, 1, 1, {1}, "w", "clang", 1, 5, "workload", "structure", "tile=1"};
  row.task = "t";
  ASSERT_TRUE(store->PutWorker({"w", "host", "cpu", "dev", "{}", 1}).ok());
  ASSERT_TRUE(testing::AddRows(*store, {.measurements = {row}}).ok());
  row.workload = "another workload", row.question_key = "q2", row.item = 1;
  ASSERT_TRUE(store->MergeMeasurements({row}).ok());
  EXPECT_TRUE(store->MedianLatencies({"q"})->at(0).has_value());
  EXPECT_EQ(store->Devices("dev")->front().measurements, 2);
  EXPECT_EQ(store->Devices("")->size(), 1u);
  ASSERT_TRUE(store->MergeDevice({"dev", "{}", 1, 0}).ok());
  EXPECT_EQ(store->Trials("workload")->size(), 1u);
  EXPECT_EQ(store->NeighbourChoices("structure", "workload", 3)->size(), 1u);
  EXPECT_EQ(store->ModelErrors("dev")->size(), 2u);
  DrainedWorkerRow quarantine{"a source", "", "fusiond", 1};
  quarantine.quarantined = true;
  ASSERT_TRUE(store->PutDrainedWorker(quarantine).ok());
  ASSERT_TRUE(store->RemoveDrainedWorker("a source").ok());

  const auto connection = Connection::Open(recorder.path, Connection::Mode::kReadOnly).value();
  int about_measurements = 0;
  const auto scans = [&](const std::string& sql) {
    std::string found;
    if (sql.find("measurements") == std::string::npos) return found;
    ++about_measurements;
    EXPECT_TRUE(connection
                    ->Query("EXPLAIN QUERY PLAN " + sql, {},
                            [&](const SqlRow& step) {
                              const std::string detail = step.Text(3);
                              if (detail.rfind("SCAN measurements", 0) == 0) found += sql + ": " + detail + "\n";
                            })
                    .ok());
    return found;
  };
  for (const std::string& sql : recorder.statements) EXPECT_EQ(scans(sql), "");
  EXPECT_GE(about_measurements, 8) << "the test no longer sees the store's statements";
  EXPECT_NE(scans("SELECT COUNT(*) FROM measurements WHERE worker = 'w'"), "") << "the check cannot fail";
}

// A sweep reads indices, not the rows of jobs, which hold requests; nor does a start read jobs that have ended.
TEST(SqliteStore, NoSweepAndNoStartReadsEveryJob) {
  StatementRecorder recorder("sweep.db");
  const auto& store = recorder.store;
  ASSERT_TRUE(store->UnfinishedJobs().ok() && store->UnfinishedTasks().ok() && store->ReleaseAllJobs("event").ok());
  ASSERT_TRUE(store->LapsedJobs("me").ok());
  ASSERT_TRUE(store->ScanReferences([](const Reference&) {}, [](const std::string&, const std::string&) {}).ok());
  ASSERT_TRUE(store->ExpireOldestJobs(5).ok() && store->ExpireRows({1, 1, 1}, 5).ok());
  const auto connection = Connection::Open(recorder.path, Connection::Mode::kReadOnly).value();
  int scans = 0;
  for (const std::string& sql : recorder.statements) {
    if (sql.find("jobs") == std::string::npos) continue;
    const absl::Status explained = connection->Query("EXPLAIN QUERY PLAN " + sql, {}, [&](const SqlRow& step) {
      const std::string detail = step.Text(3);
      if (detail.rfind("SCAN jobs", 0) != 0) return;
      ++scans;
      const bool few = detail.find("INDEX jobs_in_flight") != std::string::npos ||
                       detail.find("INDEX jobs_claimed") != std::string::npos ||
                       detail.find("INDEX jobs_without_model") != std::string::npos;
      EXPECT_TRUE(few || detail.find("COVERING INDEX") != std::string::npos ||
                  detail.find("INDEX jobs_final") != std::string::npos)  // as many as it removes
          << sql << ": " << detail;
    });
    EXPECT_TRUE(explained.ok()) << explained;
  }
  EXPECT_GE(scans, 4) << "the test no longer sees the store's statements";
}

}  // namespace
}  // namespace fusion
