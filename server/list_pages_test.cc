#include "server/list_pages.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(ListPages, TokensNameTheSamePlaceAgain) {
  const JobCursor jobs = JobCursorOf(PageTokenOf(JobCursor{7, 123, "j-A/B"})).value();
  EXPECT_EQ(jobs.before_number, 7);
  EXPECT_EQ(jobs.joined_ms, 123);
  EXPECT_EQ(jobs.joined_id, "j-A/B");
  const ListCursor list = ListCursorOf(PageTokenOf(ListCursor{-5, "w-1"})).value();
  EXPECT_EQ(list.number, -5);
  EXPECT_EQ(list.name, "w-1");
  EXPECT_EQ(JobCursorOf("")->before_number, JobCursor().before_number);
}

TEST(ListPages, OtherTextsAreRefused) {
  for (const std::string& token :
       {std::string("x"), std::string("!!"), PageTokenOf(ListCursor{1, "a"}), std::string(5000, 'A')}) {
    EXPECT_EQ(JobCursorOf(token).status().code(), absl::StatusCode::kInvalidArgument) << token;
  }
  EXPECT_EQ(ListCursorOf(PageTokenOf(JobCursor())).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ListPages, LimitsAreBounded) {
  EXPECT_EQ(PageLimit(0, 50, 1000), 50);
  EXPECT_EQ(PageLimit(7, 50, 1000), 7);
  EXPECT_EQ(PageLimit(100000, 50, 1000), 1000);
  EXPECT_EQ(PageLimit(-1, 50, 1000), 50);
}

}  // namespace
}  // namespace fusion
