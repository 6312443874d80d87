#include "client/verbs/alternatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Add(v1::Account* account, const std::string& name, int64_t kernels, double ratio, bool chosen,
         const std::string& specialisation = "") {
  v1::PlanAlternative& plan = *account->add_alternatives();
  plan.set_plan(name);
  plan.set_kernels(kernels);
  plan.set_chosen(chosen);
  plan.set_specialisation(specialisation);
  plan.set_estimate_ns(5e6);
  if (ratio == 0) return;
  plan.set_median_ns(4e6 * ratio);
  plan.set_ratio(ratio);
  plan.set_ratio_low(ratio == 1 ? 1 : ratio - 0.01);
  plan.set_ratio_high(ratio == 1 ? 1 : ratio + 0.01);
  plan.set_rounds(20);
}

TEST(Alternatives, TheOtherPlanIsComparedWithTheChosenOne) {
  v1::Account account;
  Add(&account, "by estimates", 24, 1, false);
  Add(&account, "by measurements", 48, 0.8, true);
  EXPECT_THAT(AlternativesInWords(account),
              ElementsAre("the plan by measurements (48 kernels, 3.20 ms); that by estimates (24 kernels) "
                          "takes 1.250 of its time, 1.235–1.266 with 95% confidence"));
  EXPECT_THAT(AlternativesTable(account), HasSubstr("chosen"));
  EXPECT_EQ(AlternativesToJson(account)[1]["ratio"], 0.8);
}

TEST(Alternatives, EachSpecialisationHasALine) {
  v1::Account account;
  for (const char* with : {"seq=8", "seq=16"}) {
    Add(&account, "by estimates", 24, 1, true, with);
    Add(&account, "by measurements", 1, 1.04, false, with);
  }
  const std::vector<std::string> lines = AlternativesInWords(account);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1],
            "seq=16: the plan by estimates (24 kernels, 4.00 ms); that by measurements (1 kernel) takes 1.040 "
            "of its time, 1.030–1.050 with 95% confidence");
}

TEST(Alternatives, OfManyTheNearestIsNamed) {
  v1::Account account;
  Add(&account, "offline", 6, 1, true);
  Add(&account, "none", 30, 1.5, false);
  Add(&account, "souffle", 5, 1.04, false);
  Add(&account, "power_fusion", 4, 1.2, false);
  for (const char* name : {"tvm_like", "xla_like", "fusion_stitching"}) Add(&account, name, 9, 0, false);
  EXPECT_THAT(AlternativesInWords(account),
              ElementsAre("the plan offline (6 kernels, 4.00 ms); that souffle (5 kernels) takes 1.040 of its time, "
                          "1.030–1.050 with 95% confidence; 2 more take 1.200 to 1.500 of it; 3 were not measured"));
}

TEST(Alternatives, WhatWasNotMeasuredSaysWhy) {
  v1::Account account;
  EXPECT_TRUE(AlternativesInWords(account).empty());
  EXPECT_EQ(AlternativesTable(account), "");
  Add(&account, "by estimates", 24, 0, false);
  Add(&account, "by measurements", 48, 0, true);
  account.set_not_compared("no worker");
  EXPECT_THAT(
      AlternativesInWords(account),
      ElementsAre("the plan by measurements (48 kernels); that by estimates (24 kernels)", "not measured: no worker"));
}

}  // namespace
}  // namespace fusion
