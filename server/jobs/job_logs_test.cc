#include "server/jobs/job_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTrace[] = "0123456789abcdef0123456789abcdef";

class JobLogsTest : public ::testing::Test {
 protected:
  JobLogsTest() : folder_(absl::StrCat(::testing::TempDir(), "job_logs_", getpid())) {
    std::filesystem::remove_all(folder_);
    Open();
  }
  ~JobLogsTest() override { std::filesystem::remove_all(folder_); }
  void Open(int64_t most_bytes = JobLogs::kMostBytes) {
    logs_.reset();
    logs_ = std::move(JobLogs::Open(folder_, most_bytes)).value();
  }
  std::vector<JobLogLine> Read(int64_t after = 0, LogLevel least = LogLevel::kDebug, int limit = 100000) {
    return logs_->Read("j-1", after, limit, least, size_t{1} << 30)->lines;
  }
  std::vector<std::string> Messages(LogLevel least = LogLevel::kDebug) {
    std::vector<std::string> messages;
    for (const JobLogLine& line : Read(0, least)) messages.push_back(line.line.message);
    return messages;
  }

  const std::string folder_;
  std::unique_ptr<JobLogs> logs_;
};

TEST_F(JobLogsTest, LinesOfAJobAreKeptWithTheirSourceAndPassedOnWithTheTrace) {
  std::vector<LogLine> passed;
  const Log log = logs_->Tee([&](const LogLine& line) { passed.push_back(line); });
  logs_->Begin("j-1", kTrace);
  log({LogLevel::kInfo, "started", {{"job", "j-1"}, {"waited_s", "0.1"}}});
  log({LogLevel::kWarning, "words", {{"job", "j-1"}, {"source", "compilation"}}});
  log({LogLevel::kInfo, "of another", {{"job", "j-2"}}});
  log({LogLevel::kInfo, "of none", {}});
  logs_->Append("j-1", "worker rack7", {LogLevel::kDebug, "task begins", {{"task", "t-1"}}});
  const auto lines = Read();
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0].source, "server");
  EXPECT_EQ(lines[0].number, 1);
  ASSERT_EQ(lines[0].line.fields.size(), 1);
  EXPECT_EQ(lines[0].line.fields[0].value, "0.1");
  EXPECT_EQ(lines[1].source, "compilation");
  EXPECT_EQ(lines[1].line.level, LogLevel::kWarning);
  EXPECT_EQ(lines[2].source, "worker rack7");
  ASSERT_EQ(passed.size(), 4);
  EXPECT_EQ(passed[0].fields.back().key, "trace");
  EXPECT_EQ(passed[0].fields.back().value, kTrace);
  EXPECT_EQ(passed[2].fields.size(), 1);
}

TEST_F(JobLogsTest, NothingIsKeptOfAJobBeforeItsBeginningAndAfterItsEnd) {
  logs_->Append("j-1", "server", {LogLevel::kInfo, "before", {}});
  logs_->Begin("j-1", kTrace);
  logs_->Append("j-1", "server", {LogLevel::kInfo, "amid", {}});
  logs_->End("j-1");
  logs_->Append("j-1", "server", {LogLevel::kInfo, "after", {}});
  EXPECT_THAT(Messages(), ElementsAre("amid"));
}

TEST_F(JobLogsTest, PagesFollowNumbersAndLevels) {
  logs_->Begin("j-1", kTrace);
  for (int i = 1; i <= 5; ++i) {
    logs_->Append("j-1", "server", {i % 2 ? LogLevel::kInfo : LogLevel::kDebug, absl::StrCat(i), {}});
  }
  EXPECT_THAT(Messages(LogLevel::kInfo), ElementsAre("1", "3", "5"));
  const auto page = logs_->Read("j-1", 1, 2, LogLevel::kDebug, 1 << 20);
  ASSERT_EQ(page->lines.size(), 2);
  EXPECT_EQ(page->lines[0].line.message, "2");
  EXPECT_TRUE(page->more);
  EXPECT_FALSE(logs_->Read("j-1", 3, 2, LogLevel::kDebug, 1 << 20)->more);
  EXPECT_EQ(logs_->Read("j-1", 0, 100, LogLevel::kDebug, 0)->lines.size(), 1) << "bounded in bytes";
}

TEST_F(JobLogsTest, AfterARestartTheNumbersGoOn) {
  logs_->Begin("j-1", kTrace);
  logs_->Append("j-1", "server", {LogLevel::kInfo, "one", {}});
  Open();
  logs_->Begin("j-1", kTrace);
  logs_->Append("j-1", "server", {LogLevel::kInfo, "two", {}});
  const auto lines = Read();
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[1].number, 2);
}

TEST_F(JobLogsTest, OfALogThatIsTooLongTheFirstAndTheLastLinesStay) {
  constexpr int64_t kMost = 8000;
  constexpr int kLines = 1000;
  Open(kMost);
  logs_->Begin("j-1", kTrace);
  for (int i = 1; i <= kLines; ++i) logs_->Append("j-1", "server", {LogLevel::kInfo, absl::StrCat("line ", i), {}});
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) bytes += entry.file_size();
  EXPECT_LE(bytes, kMost);
  const auto lines = Read();
  EXPECT_EQ(lines.front().number, 1);
  EXPECT_EQ(lines.back().number, kLines);
  EXPECT_GT(lines.size(), 50);
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_GT(lines[i].number, lines[i - 1].number);
}

TEST_F(JobLogsTest, ATornLineIsPassedOver) {
  logs_->Begin("j-1", kTrace);
  logs_->Append("j-1", "server", {LogLevel::kInfo, "one", {}});
  logs_->End("j-1");
  std::ofstream(folder_ + "/j-1.log", std::ios::app) << "{\"n\":2,\"t\":1\nnot JSON\n[]\n{\"n\":3,\"f\":[[1,2]]}\n";
  logs_->Begin("j-1", kTrace);
  logs_->Append("j-1", "server", {LogLevel::kInfo, "two", {}});
  EXPECT_THAT(Messages(), ElementsAre("one", "two"));
}

TEST_F(JobLogsTest, TextsThatAreNoUtf8OrTooLongAreKeptAsFarAsTheyCan) {
  logs_->Begin("j-1", kTrace);
  logs_->Append("j-1", "server", {LogLevel::kInfo, "not \xff UTF-8", {{"long", std::string(10000, 'x')}}});
  const auto lines = Read();
  ASSERT_EQ(lines.size(), 1);
  EXPECT_THAT(lines[0].line.message, HasSubstr("UTF-8"));
  EXPECT_EQ(lines[0].line.fields[0].value.size(), 4096);
}

TEST_F(JobLogsTest, MoreJobsThanFilesMayBeOpen) {
  for (int i = 0; i < 300; ++i) logs_->Begin(absl::StrCat("j-", i), kTrace);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) logs_->Append(absl::StrCat("j-", i), "server", {LogLevel::kInfo, "line", {}});
  }
  EXPECT_EQ(Read().size(), 3);
}

TEST_F(JobLogsTest, OldLogsOfJobsThatHaveEndedGo) {
  logs_->Begin("j-1", kTrace);
  logs_->Append("j-1", "server", {LogLevel::kInfo, "one", {}});
  const int64_t later = absl::ToUnixMillis(absl::Now()) + 3600 * 1000;
  EXPECT_EQ(logs_->Expire(later), 0) << "the job has not ended";
  logs_->End("j-1");
  EXPECT_EQ(logs_->Expire(later - 7200 * 1000), 0);
  EXPECT_EQ(logs_->Expire(later), 1);
  EXPECT_THAT(Messages(), IsEmpty());
}

TEST_F(JobLogsTest, NoNameOfAJobLeavesTheFolder) {
  std::ofstream(folder_ + ".log") << "{\"n\":1}\n";
  EXPECT_THAT(
      logs_->Read("../" + std::filesystem::path(folder_).filename().string(), 0, 10, LogLevel::kDebug, 1000)->lines,
      IsEmpty());
  std::filesystem::remove(folder_ + ".log");
}

TEST(TraceId, IsOfW3CsForm) {
  EXPECT_TRUE(IsTraceId(NewTraceId()));
  EXPECT_NE(NewTraceId(), NewTraceId());
  for (const char* wrong : {"", "0123", "00000000000000000000000000000000", "0123456789ABCDEF0123456789abcdef"}) {
    EXPECT_FALSE(IsTraceId(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace fusion
