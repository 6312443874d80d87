#include "server/scheduler/model_error_of.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "db/stores/testing/add_rows.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

MeasurementRow Row(int question, double model_ns, double median_ns, const std::string& device) {
  MeasurementRow row;
  row.question_key = absl::StrCat("question ", question);
  row.measurement_key = absl::StrCat("measurement ", question);
  row.device_fingerprint = device;
  row.samples = 1;
  row.min_ns = row.median_ns = row.p90_ns = median_ns;
  row.samples_ns = {median_ns};
  row.model_ns = model_ns;
  return row;
}

TEST(ModelErrorOf, IsThatOfTheDevicesQuestionsWithAnEstimate) {
  testing::TemporaryState state;
  ASSERT_TRUE(testing::AddRows(state.store(),
                               {.measurements = {Row(1, 100, 200, "a"), Row(2, 300, 600, "a"), Row(3, 50, 100, "a"),
                                                 Row(4, 0, 700, "a"), Row(5, 10, 1000, "b")}})
                  .ok());
  const auto error = ModelErrorOf(state.store(), "a");
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_EQ(error->kernels, 3) << "of one nothing was estimated, one is of another device";
  EXPECT_EQ(error->median_ratio, 2);
  EXPECT_EQ(error->rank_correlation, 1);
  EXPECT_NEAR(error->median_error, 0, 1e-12);
  EXPECT_EQ(ModelErrorOf(state.store(), "")->kernels, 4) << "all devices";
  EXPECT_EQ(ModelErrorOf(state.store(), "c")->kernels, 0);
}

TEST(PlanErrorOf, CountsPlans) {
  testing::TemporaryState state;
  PlanRow plan;
  plan.bundle_digest = "one", plan.device_fingerprint = "a", plan.model_name = "m", plan.planner = "p";
  plan.model_ns = 100, plan.median_ns = plan.p25_ns = plan.p75_ns = 300;
  PlanRow unknown = plan;
  unknown.bundle_digest = "two", unknown.model_ns = 0;
  ASSERT_TRUE(state.store().AppendPlans({plan, unknown}).ok());
  const auto error = PlanErrorOf(state.store(), "a");
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_EQ(error->kernels, 1);
  EXPECT_EQ(error->median_ratio, 3);
}

}  // namespace
}  // namespace fusion
