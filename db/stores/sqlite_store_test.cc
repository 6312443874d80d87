// Tests what only the SQLite engine guarantees: acknowledged writes survive kill -9.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "db/stores/store.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

TEST(SqliteStore, AcknowledgedRowsSurviveKill) {
  const std::string path = testing::TempDir() + "killed.db";
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
      if (!(*store)->AppendJobEvent("j", "e").ok()) _exit(1);
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

}  // namespace
}  // namespace fusion
