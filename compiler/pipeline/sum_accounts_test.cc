#include "compiler/pipeline/sum_accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using testing::HasSubstr;

TEST(SumAccounts, SumsCountsAndKeepsPlans) {
  CompileAccount a, b;
  a.nodes_model = b.nodes_model = 7;
  a.kernels = 3, b.kernels = 2;
  a.stages = {{"import", 1}, {"plan", 2}};
  b.stages = {{"import", 3}};
  a.plan_json = R"({"fusion_blocks": [1]})";
  const CompileAccount sum = SumAccounts({"seq=32", "seq=64"}, {a, b});
  EXPECT_EQ(sum.nodes_model, 7);
  EXPECT_EQ(sum.kernels, 5);
  ASSERT_EQ(sum.stages.size(), 2u);
  EXPECT_EQ(sum.stages[0].seconds, 4);
  ASSERT_EQ(sum.specialisations.size(), 2u);
  EXPECT_EQ(sum.specialisations[1].name, "seq=64");
  EXPECT_EQ(sum.specialisations[1].kernels, 2);
  EXPECT_THAT(sum.plan_json, HasSubstr("\"fusion_blocks\""));
  EXPECT_EQ(SumAccounts({""}, {a}).plan_json, a.plan_json);
}

}  // namespace
}  // namespace fusion
