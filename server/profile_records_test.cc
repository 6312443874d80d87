#include "server/profile_records.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

namespace fusion {
namespace {

PlanComparisonRow Comparison() {
  PlanComparisonRow row{std::string(64, 'a'),
                        std::string(64, 'b'),
                        "dev",
                        "plan by estimates, 3 kernels",
                        2,
                        20,
                        0.9,
                        0.89,
                        0.91,
                        900,
                        1000,
                        5,
                        6,
                        "w/w-1",
                        7};
  row.origin = "there", row.task = "t", row.fence = 8, row.item = 9;
  return row;
}

PlanRow Plan() { return {std::string(64, 'c'), "dev", "model", "dnnfusion", 2, 50, 100, 90, 110, "w/w-1", 7}; }

v1::Measurement Measured() {
  v1::Measurement record;
  record.set_question_key(std::string(64, 'd'));
  record.set_device_fingerprint("dev");
  record.set_samples(1);
  record.set_worker("w/w-1");
  return record;
}

TEST(ProfileRecords, AComparisonOfPlansArrivesAsItWasAndAsImported) {
  const PlanComparisonRow row = Comparison();
  const auto arrived = ImportedRow(ToProto(row));
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(arrived->plan_key + arrived->reference_key, row.plan_key + row.reference_key);
  EXPECT_EQ(arrived->device_fingerprint + arrived->description, row.device_fingerprint + row.description);
  EXPECT_EQ(arrived->threads, row.threads);
  EXPECT_EQ(arrived->rounds, row.rounds);
  EXPECT_EQ(arrived->ratio, row.ratio);
  EXPECT_EQ(arrived->ratio_low, row.ratio_low);
  EXPECT_EQ(arrived->ratio_high, row.ratio_high);
  EXPECT_EQ(arrived->median_ns, row.median_ns);
  EXPECT_EQ(arrived->reference_ns, row.reference_ns);
  EXPECT_EQ(arrived->model_ns, row.model_ns);
  EXPECT_EQ(arrived->reference_model_ns, row.reference_model_ns);
  EXPECT_EQ(arrived->worker, row.worker);
  EXPECT_EQ(arrived->time_ms, row.time_ms);
  EXPECT_EQ(arrived->origin + arrived->task, row.origin + row.task);
  EXPECT_EQ(arrived->fence, row.fence);
  EXPECT_EQ(arrived->item, row.item);
  EXPECT_EQ(arrived->source, "imported/w");
  EXPECT_EQ(arrived->standing, Standing::kImported);
}

TEST(ProfileRecords, AMeasurementOfAWholePlanArrivesAsItWasAndAsImported) {
  const PlanRow row = Plan();
  const auto arrived = ImportedRow(ToProto(row));
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(arrived->bundle_digest + arrived->device_fingerprint, row.bundle_digest + row.device_fingerprint);
  EXPECT_EQ(arrived->model_name + arrived->planner, row.model_name + row.planner);
  EXPECT_EQ(arrived->threads, row.threads);
  EXPECT_EQ(arrived->model_ns, row.model_ns);
  EXPECT_EQ(arrived->median_ns, row.median_ns);
  EXPECT_EQ(arrived->p25_ns, row.p25_ns);
  EXPECT_EQ(arrived->p75_ns, row.p75_ns);
  EXPECT_EQ(arrived->worker, row.worker);
  EXPECT_EQ(arrived->time_ms, row.time_ms);
  EXPECT_EQ(arrived->source, "imported/w");
}

TEST(ProfileRecords, WhatADatabaseDoesNotBelieveSaysSo) {
  PlanComparisonRow comparison = Comparison();
  EXPECT_EQ(ToProto(comparison).standing(), "believed");
  comparison.standing = Standing::kChecked;
  EXPECT_EQ(ToProto(comparison).standing(), "checked");
  comparison.quarantined = true;
  EXPECT_EQ(ToProto(comparison).standing(), "quarantined");
  PlanRow plan = Plan();
  EXPECT_FALSE(ToProto(plan).quarantined());
  plan.quarantined = true;
  EXPECT_TRUE(ToProto(plan).quarantined());
}

TEST(ProfileRecords, TheSourceIsThatOfTheRecordAndImportedOnce) {
  v1::Measurement record = Measured();
  EXPECT_EQ(ImportedRow(record)->source, "imported/w");
  record.set_source("token rack7");
  EXPECT_EQ(ImportedRow(record)->source, "imported/token rack7");
  record.set_source("imported/token rack7");
  EXPECT_EQ(ImportedRow(record)->source, "imported/token rack7");
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
const std::string kLong(4097, 'x');

TEST(ProfileRecords, AMalformedComparisonIsNamed) {
  using Change = std::function<void(v1::ProfiledComparison*)>;
  const Change changes[] = {[](auto* record) { record->set_plan_key("../x"); },
                            [](auto* record) { record->set_reference_key(std::string(64, 'g')); },
                            [](auto* record) { record->set_reference_key(record->plan_key()); },
                            [](auto* record) { record->clear_device_fingerprint(); },
                            [](auto* record) { record->set_threads(0); },
                            [](auto* record) { record->set_rounds(0); },
                            [](auto* record) { record->set_ratio(kNan); },
                            [](auto* record) { record->set_ratio(0.8); },
                            [](auto* record) { record->set_ratio_low(0); },
                            [](auto* record) { record->set_ratio_high(kInfinity); },
                            [](auto* record) { record->set_median_ns(0); },
                            [](auto* record) { record->set_reference_ns(-1); },
                            [](auto* record) { record->set_model_ns(-1); },
                            [](auto* record) { record->set_reference_model_ns(kNan); },
                            [](auto* record) { record->clear_origin(); },
                            [](auto* record) { record->clear_task(); },
                            [](auto* record) { record->set_description(kLong); },
                            [](auto* record) { record->set_source(kLong); }};
  for (const Change& change : changes) {
    v1::ProfiledComparison record = ToProto(Comparison());
    ASSERT_TRUE(ImportedRow(record).ok());
    change(&record);
    const absl::Status refused = ImportedRow(record).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << record.ShortDebugString();
    EXPECT_NE(refused.message().find("not a comparison of plans: plan_key '"), std::string::npos) << refused;
  }
}

TEST(ProfileRecords, AMalformedMeasurementOfAPlanIsNamed) {
  using Change = std::function<void(v1::ProfiledPlan*)>;
  const Change changes[] = {
      [](auto* record) { record->set_bundle_digest("c"); }, [](auto* record) { record->clear_device_fingerprint(); },
      [](auto* record) { record->set_threads(2000); },      [](auto* record) { record->set_model_ns(-1); },
      [](auto* record) { record->set_p25_ns(0); },          [](auto* record) { record->set_median_ns(80); },
      [](auto* record) { record->set_median_ns(kNan); },    [](auto* record) { record->set_p75_ns(kInfinity); },
      [](auto* record) { record->set_model_name(kLong); }};
  for (const Change& change : changes) {
    v1::ProfiledPlan record = ToProto(Plan());
    ASSERT_TRUE(ImportedRow(record).ok());
    change(&record);
    const absl::Status refused = ImportedRow(record).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << record.ShortDebugString();
    EXPECT_NE(refused.message().find("not a measurement of a whole plan: bundle_digest '"), std::string::npos)
        << refused;
  }
}

}  // namespace
}  // namespace fusion
