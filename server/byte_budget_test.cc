#include "server/byte_budget.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/retry/retry_info.h"

namespace fusion {
namespace {

TEST(ByteBudget, EachCallerHasItsOwnAndItComesBackWithTime) {
  absl::Time now = absl::UnixEpoch();
  ByteBudget budget(3600, [&] { return now; });
  EXPECT_TRUE(budget.Take("a", 3000).ok());
  EXPECT_TRUE(budget.Take("a", 600).ok());
  const absl::Status refused = budget.Take("a", 100);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RetryDelayOf(refused), absl::Seconds(100));
  EXPECT_TRUE(budget.Take("b", 3600).ok()) << "of another";
  now += *RetryDelayOf(refused);
  EXPECT_TRUE(budget.Take("a", 100).ok()) << "as it was told";
  EXPECT_FALSE(budget.Take("a", 1).ok());
  now += absl::Hours(1);
  EXPECT_TRUE(budget.Take("a", 3600).ok());
}

TEST(ByteBudget, ABlobAboveTheBudgetPassesOnceAndIsPaidFor) {
  absl::Time now = absl::UnixEpoch();
  ByteBudget budget(1000, [&] { return now; });
  EXPECT_TRUE(budget.Take("a", 5000).ok());
  now += absl::Hours(4);
  EXPECT_FALSE(budget.Take("a", 1000).ok());
  now += absl::Hours(1);
  EXPECT_TRUE(budget.Take("a", 1000).ok());
}

TEST(ByteBudget, CallersThatHaveAllTheirBytesAreForgotten) {
  absl::Time now = absl::UnixEpoch();
  ByteBudget budget(1000, [&] { return now; });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(budget.Take(absl::StrCat(i), 1000).ok());
  now += absl::Hours(2);
  EXPECT_TRUE(budget.Take("a", 1).ok());
  EXPECT_EQ(budget.callers(), 1);
}

}  // namespace
}  // namespace fusion
