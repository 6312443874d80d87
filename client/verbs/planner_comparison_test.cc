#include "client/verbs/planner_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::PlanResponse Response() {
  v1::PlanResponse plan;
  plan.mutable_account()->set_kernels(3);
  plan.mutable_account()->set_estimate_ns(4e6);
  for (const char* stage : {"import", "plan"}) {
    v1::StageTime& time = *plan.mutable_account()->add_stages();
    time.set_stage(stage);
    time.set_seconds(0.25);
  }
  plan.set_plan_json(R"({"fusion_blocks": [
    {"memory_intensive": true, "phases": 2, "bytes": {"L2": 1024, "DRAM": 2048}},
    {"memory_intensive": false, "phases": 1, "bytes": {"DRAM": 1024}},
    {"memory_intensive": true, "phases": 1, "bytes": {"L2": 7}, "kernel": false}]})");
  return plan;
}

TEST(PlannerComparison, CountsWhatThePlanSays) {
  const PlannerRow row = RowOf("dnnfusion", Response());
  EXPECT_EQ(row.launches, 3);
  EXPECT_EQ(row.memory_intensive, 1);  // a fusion block without a kernel does not count
  EXPECT_EQ(row.barriers, 1);
  EXPECT_DOUBLE_EQ(row.plan_seconds, 0.25);
  const auto json = ComparisonToJson({row});
  EXPECT_EQ(json[0]["bytes"]["DRAM"], 3072);
  EXPECT_EQ(json[0]["bytes"]["L2"], 1024);
  EXPECT_FALSE(json[0].contains("measured_ms"));
}

TEST(PlannerComparison, AMeasurementIsThatOfThePlanThatWasReturned) {
  v1::PlanResponse plan = Response();
  for (const bool chosen : {false, true}) {
    v1::PlanAlternative& one = *plan.mutable_account()->add_alternatives();
    one.set_chosen(chosen);
    one.set_median_ns(chosen ? 3e6 : 2e6);
  }
  EXPECT_EQ(RowOf("dnnfusion", plan).measured_ns, 3e6);
  EXPECT_THAT(ComparisonTable({RowOf("dnnfusion", plan)}), HasSubstr("3.00 ms"));
}

TEST(PlannerComparison, AWorkersMeasurementStandsBesideTheUnfusedForm) {
  PlannerRow measured = RowOf("dnnfusion", Response()), other = RowOf("none", Response());
  EXPECT_THAT(ComparisonTable({measured, other}), Not(HasSubstr("UNFUSED TAKES")));
  v1::ModelMeasurement found;
  found.mutable_bundle()->set_median_ns(2e6);
  found.set_ratio(1.5);
  TakeMeasurement(found, &measured);
  v1::ModelMeasurement not_found;
  not_found.set_not_done("no worker");
  TakeMeasurement(not_found, &other);
  const std::string table = ComparisonTable({measured, other});
  EXPECT_THAT(table, HasSubstr("2.00 ms"));
  EXPECT_THAT(table, HasSubstr("1.50×"));
  EXPECT_THAT(table, HasSubstr("none was not measured: no worker\n"));
  const auto json = ComparisonToJson({measured, other});
  EXPECT_EQ(json[0]["measured_ms"], 2);
  EXPECT_EQ(json[0]["unfused_ratio"], 1.5);
  EXPECT_FALSE(json[0].contains("not_measured"));
  EXPECT_EQ(json[1]["not_measured"], "no worker");
  EXPECT_FALSE(json[1].contains("measured_ms"));
}

TEST(PlannerComparison, APlannerWithoutAPlanSaysWhy) {
  const std::string table = ComparisonTable({RowOf("dnnfusion", Response()), FailedRow("other", "it cannot")});
  EXPECT_THAT(table, HasSubstr("other has no plan: it cannot\n"));
  EXPECT_THAT(table, HasSubstr("DRAM"));
}

TEST(PlannerComparison, AnAnswerWithoutThePlanHasDashes) {
  v1::PlanResponse plan = Response();
  plan.set_plan_json("");  // it was too large
  const PlannerRow row = RowOf("dnnfusion", plan);
  EXPECT_FALSE(row.detailed);
  EXPECT_FALSE(ComparisonToJson({row})[0].contains("barriers"));
  EXPECT_THAT(ComparisonTable({row}), HasSubstr("-"));
  for (const char* text : {"[]", "{", R"({"fusion_blocks": 1})", R"({"specialisations": []})",
                           R"({"fusion_blocks": [7, {"phases": "two", "bytes": {"DRAM": "much"}}]})"}) {
    plan.set_plan_json(text);
    EXPECT_THAT(ComparisonTable({RowOf("p", plan)}), Not(HasSubstr("DRAM"))) << text;
  }
}

}  // namespace
}  // namespace fusion
