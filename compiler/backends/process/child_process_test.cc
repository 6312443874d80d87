#include "compiler/backends/process/child_process.h"

#include <signal.h>

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
  auto result = RunChild({"sh", "-c", "sleep 30 & sleep 30"}, options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->timed_out);
  EXPECT_LT(result->seconds, 5);
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
