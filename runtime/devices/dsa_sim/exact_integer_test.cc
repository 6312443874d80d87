#include "runtime/devices/dsa_sim/exact_integer.h"

#include <gtest/gtest.h>

#include <limits>

namespace fusion::dsa {
namespace {

TEST(ExactInteger, IsOneThatComesBackFromAFloat) {
  constexpr int64_t kMost = int64_t{1} << 24;
  for (const int64_t exact : {int64_t{0}, int64_t{-7}, kMost, -kMost, kMost + 2, int64_t{1} << 62,
                              std::numeric_limits<int64_t>::min()}) {
    EXPECT_TRUE(IsExactAsFloat(exact)) << exact;
  }
  for (const int64_t inexact : {kMost + 1, -kMost - 1, (int64_t{1} << 62) + 1, std::numeric_limits<int64_t>::max()}) {
    EXPECT_FALSE(IsExactAsFloat(inexact)) << inexact;
  }
}

}  // namespace
}  // namespace fusion::dsa
