#include "compiler/tune/budget.h"

#include "gtest/gtest.h"

namespace fusion::tune {
namespace {

TEST(Budget, WordsAndSeconds) {
  EXPECT_EQ(ParseBudget("off")->trials, 0);
  EXPECT_GT(ParseBudget("quick")->trials, 0);
  EXPECT_LT(ParseBudget("quick")->trials, ParseBudget("full")->trials);
  EXPECT_GT(ParseBudget("quick")->share, ParseBudget("full")->share);
  EXPECT_EQ(ParseBudget("90")->seconds, 90);
  EXPECT_EQ(ParseBudget("90")->trials, ParseBudget("full")->trials);
}

TEST(Budget, AnythingElseIsRefusedWithWhatThereIs) {
  for (const char* text : {"", "fast", "-1", "0", "nan", "inf", "1e9", "10s"}) {
    const absl::Status status = ParseBudget(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find("off, quick, full, or a number of seconds"), std::string::npos);
  }
}

}  // namespace
}  // namespace fusion::tune
