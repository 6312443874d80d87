#include "compiler/backends/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

TEST(RunChild, CapturesOutputAndExitCode) {
  auto result = RunChild({"sh", "-c", "echo out; echo err >&2; exit 3"}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->stdout_text, "out\n");
  EXPECT_EQ(result->stderr_text, "err\n");
  EXPECT_FALSE(result->ok());
}

TEST(RunChild, NamesTheSignal) {
  auto result = RunChild({"sh", "-c", "kill -SEGV $$"}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->signal, SIGSEGV);
  EXPECT_THAT(result->Describe(), testing::HasSubstr("signal 11"));
}

TEST(RunChild, KillsTheWholeGroupAtTheDeadline) {
  ChildOptions options;
  options.deadline = absl::Milliseconds(200);
  auto result = RunChild({"sh", "-c", "sleep 100000 & sleep 100000"}, options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->timed_out);
}

TEST(RunChild, KillsTheWholeGroup) {
  // Child and grandchild inherit the pipe's end. Its reader meets the end of file when both are dead; if one lives on,
  // the test runs into its limit.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ChildOptions options;
  options.deadline = absl::InfiniteDuration();
  options.cancelled = [&] {
    pollfd begun{ends[0], POLLIN, 0};
    return poll(&begun, 1, 0) == 1;
  };
  const std::string script = "sleep 100000 & echo begun >/proc/self/fd/$0; sleep 100000";
  auto result = RunChild({"sh", "-c", script, std::to_string(ends[1])}, options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->cancelled);
  close(ends[1]);
  char buffer[64];
  while (read(ends[0], buffer, sizeof buffer) > 0) {
  }
  close(ends[0]);
}

TEST(StartChild, StartsAndDoesNotWait) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const auto pid = StartChild({"sh", "-c", "echo out; read never; exit 7"}, {"/", ends[1], -1});
  ASSERT_TRUE(pid.ok()) << pid.status();
  close(ends[1]);
  char buffer[64] = {};
  EXPECT_EQ(read(ends[0], buffer, sizeof buffer), 4);
  EXPECT_STREQ(buffer, "out\n");
  close(ends[0]);
  EXPECT_EQ(getpgid(*pid), *pid) << "leads a group of its own";
  int status = 0;
  EXPECT_EQ(waitpid(*pid, &status, 0), *pid);
  EXPECT_EQ(WEXITSTATUS(status), 7) << "stdin is at its end";
}

TEST(StartChild, MissingProgram) {
  EXPECT_EQ(StartChild({"/no/such/program"}, {}).status().code(), absl::StatusCode::kNotFound);
}

TEST(RunChild, CpuTimeIsLimitedWhateverTheClockSays) {
  ChildOptions options;
  options.cpu_limit = absl::Milliseconds(100);
  const auto busy = RunChild({"/bin/sh", "-c", "while :; do :; done"}, options);
  ASSERT_TRUE(busy.ok()) << busy.status();
  EXPECT_TRUE(busy->timed_out);
  EXPECT_GT(busy->cpu_seconds, 0.1);
  const auto idle = RunChild({"/bin/sleep", "0.4"}, options);
  ASSERT_TRUE(idle.ok()) << idle.status();
  EXPECT_TRUE(idle->ok()) << idle->Describe();
  // A limit that the child has set itself, and time of a process that it waited for.
  const auto limited = RunChild({"/bin/sh", "-c", "ulimit -t 1; /bin/sh -c 'while :; do :; done'; kill -XCPU $$"}, {});
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_TRUE(limited->timed_out) << limited->Describe();
  EXPECT_GT(limited->cpu_seconds, 0.5) << "of about a second, by the ticks of a limit";
}

TEST(RunChild, OutputIsBounded) {
  ChildOptions options;
  options.max_output_bytes = 1000;
  auto result = RunChild({"sh", "-c", "head -c 1000000 /dev/zero"}, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stdout_text.size(), 1000);
  EXPECT_TRUE(result->ok());
}

TEST(RunChild, MissingProgram) {
  auto result = RunChild({"/no/such/program"}, {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
}

TEST(FindOnPath, FindsTheFirst) {
  EXPECT_THAT(FindOnPath({"no-such-tool", "sh"}), testing::EndsWith("/sh"));
  EXPECT_EQ(FindOnPath({"no-such-tool"}), "");
}

TEST(FindBesideThisProgram, FindsOnlyProgramsOfTheSameFolder) {
  const std::string self = FindBesideThisProgram("process_test");
  ASSERT_FALSE(self.empty());
  EXPECT_TRUE(std::filesystem::equivalent(self, "/proc/self/exe"));
  EXPECT_EQ(FindBesideThisProgram("no such program"), "");
}

TEST(LastWords, AreTheEndOfAText) {
  EXPECT_EQ(LastWords(""), "");
  EXPECT_EQ(LastWords("abc", 3), "abc");
  EXPECT_EQ(LastWords("abcd", 3), "…bcd");
  EXPECT_EQ(LastWords(std::string(2000, 'x')).size(), 1500 + std::string("…").size());
}

}  // namespace
}  // namespace fusion
