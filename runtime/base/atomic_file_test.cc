#include "runtime/base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/mapped_file.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/atomic_file_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  int CountFiles() const { return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {})); }
  std::string folder_;
};

TEST_F(AtomicFileTest, CommitReplacesAndAbandonLeavesNothing) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  {
    auto file = AtomicFile::Create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("new").ok());
    EXPECT_EQ((*MappedFile::Open(path))->bytes(), "old");
  }
  EXPECT_EQ(CountFiles(), 1);
  EXPECT_EQ((*MappedFile::Open(path))->bytes(), "old");
  ASSERT_TRUE(WriteFileAtomically(path, "newer").ok());
  EXPECT_EQ((*MappedFile::Open(path))->bytes(), "newer");
}

TEST_F(AtomicFileTest, ASecretIsItsOwnersAlone) {
  const std::string path = folder_ + "/secret";
  ASSERT_TRUE(WriteFileAtomically(path, "readable").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "secret", 0600).ok());
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(AtomicFileTest, AKilledWriterLeavesNothingForLong) {
  const std::string path = folder_ + "/a";
  const pid_t child = fork();
  if (child == 0) {
    auto file = AtomicFile::Create(path);
    (void)(*file)->Append("half");
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  // The first file is what a killed writer leaves on a file system without nameless files; another process is still
  // writing the second.
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  const std::string prefix = folder_ + "/.fusion-tmp-" + host + "-";
  std::ofstream(prefix + std::to_string(child) + "-0") << "half";
  std::ofstream(prefix + std::to_string(getpid()) + "-7") << "half";
  ASSERT_TRUE(WriteFileAtomically(path, "whole").ok());
  EXPECT_EQ(CountFiles(), 2);
  EXPECT_TRUE(std::filesystem::exists(prefix + std::to_string(getpid()) + "-7"));
}

TEST_F(AtomicFileTest, FullDiskIsResourceExhausted) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  getrlimit(RLIMIT_FSIZE, &old_limit);
  rlimit limit = old_limit;
  limit.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &limit);
  const absl::Status status = WriteFileAtomically(folder_ + "/big", std::string(5000, 'x'));
  setrlimit(RLIMIT_FSIZE, &old_limit);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("big"));
  EXPECT_EQ(CountFiles(), 0);
}

TEST_F(AtomicFileTest, WritesWithinWhatWasAppended) {
  const std::string path = folder_ + "/a";
  auto file = AtomicFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("0123456789").ok());
  EXPECT_TRUE((*file)->WriteAt(2, "ab").ok());
  EXPECT_TRUE((*file)->WriteAt(9, "z").ok());
  EXPECT_EQ((*file)->WriteAt(9, "zz").code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*file)->WriteAt(-1, "z").code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*file)->size_bytes(), 10);
  ASSERT_TRUE((*file)->Commit(/*durable=*/false).ok());
  EXPECT_EQ((*MappedFile::Open(path))->bytes(), "01ab45678z");
}

TEST_F(AtomicFileTest, APathThatNamesNoFileIsRefused) {
  for (const std::string& path : {std::string(), folder_ + "/"}) {
    EXPECT_EQ(AtomicFile::Create(path).status().code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(AtomicFile::Create(folder_ + "/none/a").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fusion
