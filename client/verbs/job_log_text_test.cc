#include "client/verbs/job_log_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobLogText, ALineHasItsParts) {
  v1::LogRecord line;
  line.set_time_ms(1500);
  line.set_level("info");
  line.set_source("server");
  line.set_message("started");
  (*line.mutable_fields())["waited_s"] = "0.001";
  (*line.mutable_fields())["model"] = "a b";
  const std::string text = JobLogLineInWords(line);
  EXPECT_THAT(text, HasSubstr("01.500 info    server       started"));
  EXPECT_THAT(text, EndsWith("started  model='a b' waited_s=0.001"));
}

TEST(JobLogText, NoTextControlsTheTerminal) {
  v1::LogRecord line;
  line.set_message("a\nb\x1b[31m");
  EXPECT_THAT(JobLogLineInWords(line), Not(HasSubstr("\n")));
  EXPECT_THAT(JobLogLineInWords(line), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace fusion
