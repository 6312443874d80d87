#include "runtime/base/run_check.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(RunCheckTest, NamesTheNumbers) {
  EXPECT_TRUE(RunCheckResult("{1}", {}).ok());
  EXPECT_TRUE(RunCheckResult("{1}", {1, 5}).ok());
  const absl::Status status = RunCheckResult("{1} meets {2}, {3}", {0, 5, 6});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "5 meets 6, {3}");
}

}  // namespace
}  // namespace fusion
