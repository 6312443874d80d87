#include "worker/simulated/simulated_device.h"

#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/bundle/bundle_writer.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TaskContext NeverCancelled() {
  return {[] { return false; }};
}

std::string Question(const std::map<std::string, std::string>& options) {
  const std::string path = ::testing::TempDir() + "/simulated_question.fusion";
  Manifest manifest;
  manifest.target = kSimulatedKind;
  manifest.options = options;
  auto writer = BundleWriter::Create(path).value();
  EXPECT_TRUE(writer->Finish(manifest).ok());
  std::ifstream file(path, std::ios::binary);
  v1::MeasurePayload payload;
  payload.add_items()->mutable_bundle()->assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return payload.SerializeAsString();
}

double Latency(int64_t seed, const std::string& kernel, const std::string& estimate_ns = "1000") {
  SimulatedMeasureExecutor device(seed, absl::ZeroDuration());
  auto bytes = device.Execute({}, Question({{"kernel", kernel}, {"estimate_ns", estimate_ns}}), NeverCancelled());
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  v1::MeasureResults results;
  EXPECT_TRUE(bytes.ok() && results.ParseFromString(*bytes));
  EXPECT_EQ(results.results_size(), 1);
  EXPECT_EQ(results.results(0).samples_ns_size(), 1);
  return results.results(0).median_ns();
}

TEST(SimulatedDevice, LatencyIsAFunctionOfSeedKernelAndEstimate) {
  EXPECT_EQ(Latency(1, "a"), Latency(1, "a"));
  EXPECT_NE(Latency(1, "a"), Latency(2, "a"));
  EXPECT_NE(Latency(1, "a"), Latency(1, "b"));
  EXPECT_DOUBLE_EQ(Latency(1, "a", "3000"), 3 * Latency(1, "a"));
  for (int i = 0; i < 50; ++i) {
    const double latency = Latency(7, absl::StrCat(i));
    EXPECT_GE(latency, 500);
    EXPECT_LE(latency, 2000);
  }
}

TEST(SimulatedDevice, ASentinelIsAnsweredAndAPaceIsOfTheTimesAlone) {
  v1::MeasurePayload payload;
  ASSERT_TRUE(payload.ParseFromString(Question({{"kernel", "a"}, {"estimate_ns", "1000"}})));
  payload.set_sentinel(payload.items(0).bundle());
  payload.set_canaries(true);
  std::vector<v1::MeasureResults> results;
  for (const double pace : {1.0, 0.5}) {
    SimulatedMeasureExecutor device(1, absl::ZeroDuration(), pace);
    const auto bytes = device.Execute({}, payload.SerializeAsString(), NeverCancelled());
    ASSERT_TRUE(bytes.ok() && results.emplace_back().ParseFromString(*bytes));
    EXPECT_EQ(results.back().sentinel().median_ns(), results.back().results(0).median_ns());
  }
  EXPECT_DOUBLE_EQ(results[1].results(0).median_ns(), results[0].results(0).median_ns() / 2);
  ASSERT_EQ(results[0].results(0).outputs_size(), 1);
  EXPECT_EQ(results[1].results(0).outputs(0), results[0].results(0).outputs(0));
}

TEST(SimulatedDevice, WaitsAndCanBeStopped) {
  const std::string question = Question({{"kernel", "a"}, {"estimate_ns", "1000"}});
  EXPECT_TRUE(SimulatedMeasureExecutor(1, absl::Milliseconds(1)).Execute({}, question, NeverCancelled()).ok());
  SimulatedMeasureExecutor slow(1, absl::InfiniteDuration());
  int asked = 0;
  EXPECT_EQ(slow.Execute({}, question, {[&] { return ++asked == 3; }}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
}

TEST(SimulatedDevice, WhatIsNoMeasurementIsRefused) {
  SimulatedMeasureExecutor device(1, absl::ZeroDuration());
  EXPECT_THAT(device.Execute({}, Question({}), NeverCancelled()).status().message(), HasSubstr("no measurement"));
  EXPECT_FALSE(device.Execute({}, Question({{"kernel", "a"}, {"estimate_ns", "fast"}}), NeverCancelled()).ok());
  EXPECT_FALSE(device.Execute({}, "garbage", NeverCancelled()).ok());
}

TEST(SimulatedDevice, SaysThatItRunsNoWholeModel) {
  SimulatedMeasureExecutor device(1, absl::InfiniteDuration());
  for (const bool verify : {false, true}) {
    v1::MeasurePayload payload;
    payload.mutable_model()->set_verify(verify);
    auto bytes = device.Execute({}, payload.SerializeAsString(), NeverCancelled());
    v1::MeasureResults results;
    ASSERT_TRUE(bytes.ok() && results.ParseFromString(*bytes)) << bytes.status();
    EXPECT_EQ(results.has_verification(), verify);
    EXPECT_THAT(verify ? results.verification().not_done() : results.measurement().not_done(), HasSubstr("no model"));
  }
}

TEST(SimulatedDevice, BuildsByCopying) {
  v1::BuildPayload payload;
  payload.add_units()->set_source("text");
  SimulatedBuildExecutor executor;
  auto bytes = executor.Execute({}, payload.SerializeAsString(), NeverCancelled());
  v1::BuildResult result;
  ASSERT_TRUE(bytes.ok() && result.ParseFromString(*bytes));
  EXPECT_EQ(result.binaries(0), "text");
}

TEST(SimulatedDevice, EachSeedIsADeviceOfItsOwn) {
  EXPECT_EQ(SimulatedDeviceModel(1).Fingerprint(), SimulatedDeviceModel(1).Fingerprint());
  EXPECT_NE(SimulatedDeviceModel(1).Fingerprint(), SimulatedDeviceModel(2).Fingerprint());
}

}  // namespace
}  // namespace fusion
