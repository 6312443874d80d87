#include "compiler/bundle/account_weights.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

using Causes = std::map<std::string, int64_t>;

TEST(AccountWeights, EachByteHasItsCause) {
  const char a = 0, b = 0, c = 0, d = 0;
  WeightsAccount account;
  account.model_bytes = 1300;
  AccountWeights({{&a, 100, 100, 100, 128},  // padded
                  {&b, 360, 360, 640, 650},  // transformed, and padded
                  {&c, 400, 400, 400, 416},  // in two layouts
                  {&c, 400, 400, 400, 400},
                  {&d, 300, 100, 100, 100},  // two parts that two kernels read
                  {&d, 300, 200, 200, 200},
                  {nullptr, 0, 0, 0, 64}},  // a kernel's own table
                 2000, &account);
  EXPECT_EQ(account.bundle_bytes, 2000);
  EXPECT_EQ(account.causes, (Causes{{"rewritten", -140},
                                    {"padding", 28 + 10 + 16},
                                    {"transformed", 280},
                                    {"layouts", 400},
                                    {"tables", 64},
                                    {"alignment", 2000 - (128 + 650 + 416 + 400 + 300 + 64)}}));
  int64_t sum = account.model_bytes;
  for (const auto& cause : account.causes) sum += cause.second;
  EXPECT_EQ(sum, account.bundle_bytes);
  EXPECT_DOUBLE_EQ(account.ratio(), 2000.0 / 1300);
}

TEST(AccountWeights, WhatIsAsInTheModelHasNoCause) {
  const char a = 0;
  WeightsAccount account;
  account.model_bytes = 64;
  AccountWeights({{&a, 64, 64, 64, 64}}, 64, &account);
  EXPECT_TRUE(account.causes.empty());
  EXPECT_DOUBLE_EQ(account.ratio(), 1);
}

TEST(AccountWeights, CausesHaveWords) {
  EXPECT_EQ(WeightCauseInWords(weight_cause::kPadding), "padding to vectors");
  EXPECT_EQ(WeightCauseInWords("unheard of"), "unheard of");
}

}  // namespace
}  // namespace fusion
