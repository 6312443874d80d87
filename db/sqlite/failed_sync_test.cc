// A disk that fails a sync: this program's own fsync and fdatasync take the place of the C library's, for SQLite too.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "db/sqlite/writer.h"
#include "gtest/gtest.h"

namespace {

std::atomic<const char*> failing = nullptr;  // syncs of files whose names end like this fail

int SyncOrFail(int fd, long call) {
  if (const char* ending = failing.load(); ending != nullptr) {
    char path[4096];
    const std::string name = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t length = readlink(name.c_str(), path, sizeof path);
    if (length > 0 && std::string(path, static_cast<size_t>(length)).ends_with(ending)) {
      errno = EIO;
      return -1;
    }
  }
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

extern "C" int fsync(int fd) { return SyncOrFail(fd, SYS_fsync); }
extern "C" int fdatasync(int fd) { return SyncOrFail(fd, SYS_fdatasync); }

namespace fusion {
namespace {

class FailedSyncTest : public testing::Test {
 protected:
  FailedSyncTest() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
    auto connection = Connection::Open(path_, Connection::Mode::kReadWrite).value();
    EXPECT_TRUE(connection->ExecScript("CREATE TABLE t (v BLOB) STRICT").ok());
    writer_ = std::make_unique<Writer>(std::move(connection), nullptr, [this](const absl::Status& failed) {
      std::lock_guard<std::mutex> lock(mutex_);
      failures_.push_back(failed.ToString());
    });
  }
  ~FailedSyncTest() override { failing = nullptr; }
  absl::Status Insert(size_t bytes) {
    return writer_->Write(
        [&](Connection& db) { return db.Run("INSERT INTO t VALUES (?)", {Bytes{std::string(bytes, 'v')}}); });
  }
  // The writer has done everything then.
  std::vector<std::string> Failures() {
    writer_.reset();
    return failures_;
  }
  int64_t Rows() {
    return (*Connection::Open(path_, Connection::Mode::kReadOnly))->QueryInt("SELECT COUNT(*) FROM t").value();
  }

  const std::string path_ = testing::TempDir() + "failed_sync.db";
  std::mutex mutex_;
  std::vector<std::string> failures_;
  std::unique_ptr<Writer> writer_;
};

TEST_F(FailedSyncTest, OfACommitIsReportedAndAcknowledgesNothing) {
  ASSERT_TRUE(Insert(10).ok());
  failing = "-wal";
  EXPECT_FALSE(Insert(10).ok());
  failing = nullptr;
  EXPECT_EQ(Rows(), 1);
  const std::vector<std::string> failures = Failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].find("SQLite 1034"), std::string::npos) << failures[0];
}

TEST_F(FailedSyncTest, OfACheckpointIsReported) {
  ASSERT_TRUE(Insert(4096 * 500).ok());
  failing = ".db";
  ASSERT_TRUE(Insert(4096 * 600).ok()) << "the commit itself is on disk";
  const std::vector<std::string> failures = Failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].find("checkpoint"), std::string::npos) << failures[0];
  EXPECT_EQ(Rows(), 2);
}

TEST_F(FailedSyncTest, OtherFailuresAreNot) {
  EXPECT_FALSE(writer_->Write([](Connection& db) { return db.Run("INSERT INTO t VALUES ('a text')"); }).ok());
  EXPECT_TRUE(Failures().empty());
}

}  // namespace
}  // namespace fusion
