#include "compiler/backends/process/child_process.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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
  const std::string file = testing::TempDir() + "/child_process_test_" + std::to_string(getpid());
  pid_t grandchild = 0;
  ChildOptions options;
  options.deadline = absl::InfiniteDuration();
  options.cancelled = [&] { return bool(std::ifstream(file) >> grandchild); };
  auto result = RunChild({"sh", "-c", "sleep 100000 & echo $! > $0.new; mv $0.new $0; sleep 100000", file}, options);
  std::filesystem::remove(file);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->cancelled);
  // The grandchild has gone, or is dead and its new parent has not reaped it yet. If it lives on, the test runs into
  // its limit.
  auto lives = [&] {
    std::string pid, name, state;
    return (std::ifstream("/proc/" + std::to_string(grandchild) + "/stat") >> pid >> name >> state) && state != "Z";
  };
  while (lives()) usleep(1000);
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

}  // namespace
}  // namespace fusion
