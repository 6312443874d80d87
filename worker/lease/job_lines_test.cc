#include "worker/lease/job_lines.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

TEST(JobLines, OnlyLinesAboutAJobAreKeptAndAllArePassedOn) {
  const auto lines = std::make_shared<JobLines>();
  int passed = 0;
  const Log log = JobLines::Tee(lines, [&](const LogLine&) { ++passed; });
  log({LogLevel::kInfo, "serving", {{"server", "unix:s"}}});
  log({LogLevel::kInfo, "of an unknown job", {{"job", ""}}});
  log({LogLevel::kWarning, "task ended", {{"job", "j-1"}, {"outcome", "not \xff UTF-8"}}});
  EXPECT_EQ(passed, 3);
  const auto taken = lines->Take();
  ASSERT_EQ(taken.size(), 1);
  EXPECT_EQ(taken[0].level(), "warning");
  EXPECT_EQ(taken[0].message(), "task ended");
  EXPECT_EQ(taken[0].fields().at("outcome"), "not ? UTF-8");
  EXPECT_GT(taken[0].time_ms(), 0);
  EXPECT_TRUE(lines->Take().empty());
}

TEST(JobLines, WhatWasPutBackComesFirst) {
  JobLines lines;
  lines.Add({LogLevel::kInfo, "one", {{"job", "j-1"}}});
  auto taken = lines.Take();
  lines.Add({LogLevel::kInfo, "two", {{"job", "j-1"}}});
  lines.PutBack(std::move(taken));
  const auto both = lines.Take();
  ASSERT_EQ(both.size(), 2);
  EXPECT_EQ(both[0].message(), "one");
}

TEST(JobLines, TheOldestOfTooManyGo) {
  JobLines lines;
  const size_t all = JobLines::kMostLines + 10;
  for (size_t i = 0; i < all; ++i) lines.Add({LogLevel::kInfo, absl::StrCat(i), {{"job", "j-1"}}});
  const auto taken = lines.Take();
  ASSERT_EQ(taken.size(), JobLines::kMostLines);
  EXPECT_EQ(taken.back().message(), absl::StrCat(all - 1));
}

TEST(JobLines, TheyFitIntoACall) {
  JobLines lines;
  for (size_t i = 0; i < JobLines::kMostLines; ++i) {
    lines.Add({LogLevel::kInfo, std::string(10000, 'm'), {{"job", "j-1"}, {"outcome", std::string(10000, 'o')}}});
  }
  size_t bytes = 0;
  const auto taken = lines.Take();
  for (const v1::LogRecord& record : taken) bytes += record.ByteSizeLong();
  EXPECT_FALSE(taken.empty());
  EXPECT_LE(bytes, JobLines::kMostBytes);
}

}  // namespace
}  // namespace fusion
