#include "db/sqlite/writer.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <thread>

#include "gtest/gtest.h"

namespace fusion {
namespace {

std::string FreshPath(const std::string& name) {
  std::string path = testing::TempDir() + name;
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  return path;
}

TEST(Writer, CommitsManyThreadsAndIsolatesFailures) {
  const std::string path = FreshPath("writer.db");
  int commits = 0, operations = 0;
  {
    auto connection = Connection::Open(path, Connection::Mode::kReadWrite);
    ASSERT_TRUE(connection.ok()) << connection.status();
    ASSERT_TRUE((*connection)->ExecScript("CREATE TABLE t (v INTEGER PRIMARY KEY) STRICT").ok());
    Writer writer(std::move(*connection), [&](double, int n) { ++commits, operations += n; });
    std::vector<std::thread> threads;
    std::atomic<int> failed = 0;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          // Every tenth operation writes and then fails: nothing that it wrote may remain.
          const bool fail = i % 10 == 9;
          absl::Status status = writer.Write([&](Connection& db) -> absl::Status {
            absl::Status run = db.Run("INSERT INTO t VALUES (?)", {int64_t{t * 1000 + i}});
            return fail ? absl::AbortedError("on purpose") : run;
          });
          if (!status.ok()) ++failed;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed, 40);
    EXPECT_EQ(writer.Write([](Connection& db) { return db.Run("INSERT INTO t VALUES (0)"); }).code(),
              absl::StatusCode::kAlreadyExists);
  }
  EXPECT_EQ(operations, 401);
  EXPECT_LT(commits, 401) << "no group was ever formed";
  auto reader = Connection::Open(path, Connection::Mode::kReadOnly);
  EXPECT_EQ((*reader)->QueryInt("SELECT COUNT(*) FROM t").value(), 360);
}

// The limit stands in for a full disk. An operation that fails for another reason says nothing about the disk.
TEST(Writer, TellsWhetherTheDiskTakesWhatIsWritten) {
  auto connection = Connection::Open(FreshPath("full.db"), Connection::Mode::kReadWrite).value();
  ASSERT_TRUE(connection->ExecScript("CREATE TABLE t (v TEXT NOT NULL) STRICT").ok());
  std::vector<absl::Status> told;
  Writer writer(std::move(connection), nullptr, nullptr, [&](const absl::Status& stored) { told.push_back(stored); });
  const auto write = [&](const std::string& text) {
    return writer.Write([&](Connection& db) { return db.Run("INSERT INTO t VALUES (?)", {text}); });
  };
  ASSERT_TRUE(write("small").ok());
  EXPECT_FALSE(writer.Write([](Connection& db) { return db.Run("INSERT INTO t VALUES (NULL)"); }).ok());
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(told[0].ok() && told[1].ok()) << told[1];
  rlimit unlimited;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit limited{1 << 20, unlimited.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const absl::Status failed = write(std::string(2 << 20, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(told.back(), failed);
  ASSERT_TRUE(write("small").ok());
  EXPECT_TRUE(told.back().ok()) << told.back();
}

// A log of a thousand pages, as many as are written between two checkpoints, has no room there.
TEST(Writer, EmptiesItsLogWhereTheDiskHasNoRoomForALongerOne) {
  const std::string path = FreshPath("short_log.db");
  auto connection = Connection::Open(path, Connection::Mode::kReadWrite).value();
  ASSERT_TRUE(connection->ExecScript("CREATE TABLE t (v TEXT NOT NULL) STRICT; INSERT INTO t VALUES ('')").ok());
  std::vector<absl::Status> told;
  Writer writer(std::move(connection), nullptr, nullptr, [&](const absl::Status& stored) { told.push_back(stored); });
  rlimit unlimited;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit limited{256 << 10, unlimited.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  std::vector<absl::Status> written;
  for (int i = 0; i < 400; ++i) {
    written.push_back(writer.Write([&](Connection& db) { return db.Run("UPDATE t SET v = v || 'x'"); }));
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  for (const absl::Status& status : written) ASSERT_TRUE(status.ok()) << status;
  for (const absl::Status& status : told) ASSERT_TRUE(status.ok()) << status;
  auto reader = Connection::Open(path, Connection::Mode::kReadOnly).value();
  EXPECT_EQ(reader->QueryInt("SELECT LENGTH(v) FROM t").value(), 400) << "each ran once, but for what left no trace";
}

TEST(Connection, ReadOnlyCannotWriteAndMissingFileIsUnavailable) {
  EXPECT_EQ(Connection::Open("/nonexistent/x.db", Connection::Mode::kReadWrite).status().code(),
            absl::StatusCode::kUnavailable);
  const std::string path = FreshPath("ro.db");
  auto writer = Connection::Open(path, Connection::Mode::kReadWrite);
  ASSERT_TRUE((*writer)->ExecScript("CREATE TABLE t (v TEXT) STRICT").ok());
  auto reader = Connection::Open(path, Connection::Mode::kReadOnly);
  EXPECT_FALSE((*reader)->Run("INSERT INTO t VALUES ('x')").ok());
}

}  // namespace
}  // namespace fusion
