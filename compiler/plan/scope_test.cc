#include "compiler/plan/scope.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(Scope, NamesAreTheWordsOfPlansAndKernels) {
  EXPECT_STREQ(ScopeName(Scope::kLane), "lane");
  EXPECT_STREQ(ScopeName(Scope::kWarp), "warp");
  EXPECT_STREQ(ScopeName(Scope::kBlock), "block");
  EXPECT_STREQ(ScopeName(Scope::kDevice), "device");
  EXPECT_STREQ(ScopeName(Scope::kKernel), "kernel");
}

// "Below kernel" is how a plan says that two operators share a kernel.
TEST(Scope, NearerIsLess) {
  EXPECT_LT(Scope::kLane, Scope::kWarp);
  EXPECT_LT(Scope::kWarp, Scope::kBlock);
  EXPECT_LT(Scope::kBlock, Scope::kDevice);
  EXPECT_LT(Scope::kDevice, Scope::kKernel);
}

}  // namespace
}  // namespace fusion
