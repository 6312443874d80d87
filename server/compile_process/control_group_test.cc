// On a folder that looks like a group, whose files are plain ones, and on a real group where one can be made.
#include "server/compile_process/control_group.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class ControlGroupTest : public ::testing::Test {
 protected:
  ControlGroupTest() {
    for (const char* group : {"", "/server"}) AddFiles(absl::StrCat(own_, group));
    Put(own_ + "/cgroup.controllers", "cpu io memory pids\n");
  }
  ~ControlGroupTest() override { std::filesystem::remove_all(own_); }

  // The kernel makes the files of a group with it.
  static void AddFiles(const std::string& group) {
    std::filesystem::create_directories(group);
    for (const char* name : {"cgroup.procs", "cgroup.kill", "cgroup.subtree_control", "memory.max", "memory.swap.max",
                             "memory.oom.group", "memory.events", "pids.max"}) {
      Put(absl::StrCat(group, "/", name), "");
    }
  }
  static void Put(const std::string& file, const std::string& text) { std::ofstream(file) << text; }
  static std::string Read(const std::string& file) {
    std::ifstream stream(file);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  // The group that Make makes next, with its files.
  std::string Next() {
    static int count = 0;
    const std::string group = absl::StrCat(own_, "/compilation-", count++);
    AddFiles(group);
    return group;
  }

  const std::string own_ = absl::StrCat(testing::TempDir(), "/control-group-", getpid());
};

TEST_F(ControlGroupTest, TheServerGetsAGroupBelowItsOwnBeforeLimitsAreSwitchedOn) {
  ASSERT_TRUE(ControlGroups::Open(own_).ok());
  EXPECT_EQ(Read(own_ + "/server/cgroup.procs"), absl::StrCat(getpid()));
  EXPECT_EQ(Read(own_ + "/cgroup.subtree_control"), "+memory +pids");
}

TEST_F(ControlGroupTest, ACompilationIsLimitedWithAllThatItStarts) {
  const auto groups = ControlGroups::Open(own_);
  ASSERT_TRUE(groups.ok()) << groups.status();
  const std::string folder = Next();
  {
    const auto group = (*groups)->Make(int64_t{5} << 30, 100);
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ(Read(folder + "/memory.max"), "5368709120");
    EXPECT_EQ(Read(folder + "/memory.swap.max"), "0");
    EXPECT_EQ(Read(folder + "/memory.oom.group"), "1");
    EXPECT_EQ(Read(folder + "/pids.max"), "100");
    ASSERT_TRUE((*group)->Add(4711).ok());
    EXPECT_EQ(Read(folder + "/cgroup.procs"), "4711");
    EXPECT_FALSE((*group)->RanOutOfMemory());
    Put(folder + "/memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\noom_group_kill 0\n");
    EXPECT_FALSE((*group)->RanOutOfMemory());
    Put(folder + "/memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n");
    EXPECT_TRUE((*group)->RanOutOfMemory());
    EXPECT_EQ(Read(folder + "/cgroup.kill"), "");
  }
  EXPECT_EQ(Read(folder + "/cgroup.kill"), "1") << "what is left of it ends with the group";
}

TEST_F(ControlGroupTest, AMachineWithoutSwapAndACompilationWithoutALimit) {
  const auto groups = ControlGroups::Open(own_);
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::filesystem::remove(Next() + "/memory.swap.max");
  EXPECT_TRUE((*groups)->Make(1 << 20, 10).ok());
  const std::string folder = Next();
  EXPECT_TRUE((*groups)->Make(0, 10).ok());
  EXPECT_EQ(Read(folder + "/memory.max"), "");
}

TEST_F(ControlGroupTest, WhereNothingCanBeLimitedItSaysWhy) {
  EXPECT_EQ(ControlGroups::Open("").status().code(), absl::StatusCode::kFailedPrecondition);
  Put(own_ + "/cgroup.controllers", "cpu pids\n");
  const absl::Status no_memory = ControlGroups::Open(own_).status();
  EXPECT_EQ(no_memory.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(no_memory.message()), HasSubstr("no controller 'memory'"));
  EXPECT_THAT(std::string(no_memory.message()), HasSubstr("Delegate=memory pids"));
  EXPECT_EQ(ControlGroups::Open(own_ + "/none").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ControlGroupTest, AKernelThatRefusesALimitIsTold) {
  const auto groups = ControlGroups::Open(own_);
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::filesystem::remove(Next() + "/memory.max");
  EXPECT_FALSE((*groups)->Make(1 << 20, 10).ok());
}

TEST(OwnControlGroupTest, IsThatOfVersion2) {
  const std::string mounts =
      "sysfs /sys sysfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
  EXPECT_EQ(OwnControlGroup("0::/system.slice/fusiond.service\n", mounts),
            "/sys/fs/cgroup/system.slice/fusiond.service");
  EXPECT_EQ(OwnControlGroup("0::/\n", mounts), "/sys/fs/cgroup");
  EXPECT_EQ(
      OwnControlGroup("9:name=systemd:/\n4:memory:/a\n0::/b\n",
                      "cgroup /sys/fs/cgroup/memory cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"),
      "/sys/fs/cgroup/unified/b");
  EXPECT_EQ(OwnControlGroup("4:memory:/a\n", mounts), "") << "version 1 alone";
  EXPECT_EQ(OwnControlGroup("0::/a\n", "tmpfs /tmp tmpfs rw 0 0\n"), "");
  EXPECT_EQ(OwnControlGroup("", ""), "");
}

// Without limits: the machine's controllers may be those of version 1.
TEST(RealControlGroup, EndsAlsoWhatHasLeftItsProcessGroup) {
  std::stringstream cgroup, mounts;
  cgroup << std::ifstream("/proc/self/cgroup").rdbuf();
  mounts << std::ifstream("/proc/self/mounts").rdbuf();
  const std::string own = OwnControlGroup(cgroup.str(), mounts.str());
  const std::string folder = absl::StrCat(own, "/fusion-test-", getpid());
  std::error_code error;
  if (own.empty() || !std::filesystem::create_directory(folder, error)) GTEST_SKIP() << "no group can be made";
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char go = 0;
    if (read(ends[0], &go, 1) != 1) _exit(1);
    if (fork() == 0) {
      setsid();
      if (write(ends[0], "x", 1) != 1) _exit(1);
    }
    for (;;) pause();
  }
  {
    const ControlGroup group(folder);
    ASSERT_TRUE(group.Add(child).ok());
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    char left = 0;
    ASSERT_EQ(read(ends[1], &left, 1), 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(std::filesystem::exists(folder)) << "a group with a process cannot be removed";
  std::filesystem::remove(folder, error);
}

// Where the memory of this process's group can be divided, as under systemd with Delegate=memory pids.
TEST(RealControlGroup, AnAllocationBeyondTheLimitIsAKillAndCounted) {
  std::stringstream cgroup, mounts;
  cgroup << std::ifstream("/proc/self/cgroup").rdbuf();
  mounts << std::ifstream("/proc/self/mounts").rdbuf();
  const auto groups = ControlGroups::Open(OwnControlGroup(cgroup.str(), mounts.str()));
  if (!groups.ok()) GTEST_SKIP() << "no memory can be limited: " << groups.status().message();
  constexpr size_t kLimit = 32 << 20, kAsked = 256 << 20;
  for (const bool exceeds : {false, true}) {
    const auto group = (*groups)->Make(kLimit, 10);
    ASSERT_TRUE(group.ok()) << group.status();
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      char go = 0;
      if (read(ends[0], &go, 1) != 1) _exit(1);
      const size_t size_bytes = exceeds ? kAsked : kLimit / 8;
      auto* memory = static_cast<volatile char*>(malloc(size_bytes));
      for (size_t at = 0; memory != nullptr && at < size_bytes; at += 4096) memory[at] = 1;
      _exit(0);
    }
    ASSERT_TRUE((*group)->Add(child).ok());
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, exceeds) << status;
    EXPECT_EQ((*group)->RanOutOfMemory(), exceeds);
    for (const int end : ends) close(end);
  }
}

}  // namespace
}  // namespace fusion
