// Runs fusion-measure as the worker does.
#include <fstream>

#include "compiler/backends/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/measure/summary.h"

namespace fusion {
namespace {

ChildResult RunProgram(const std::vector<std::string>& argv) {
  ChildOptions options;
  options.deadline = absl::InfiniteDuration();
  auto result = RunChild(argv, options);
  return std::move(result).value();
}

TEST(FusionMeasure, TimesABundle) {
  const std::string path = testing::TempDir() + "/measure_test.fusion";
  ASSERT_TRUE(RunProgram({FUSION_MAKE_TINY_BUNDLE, path}).ok());
  const ChildResult child = RunProgram({FUSION_MEASURE, path, "--threads", "1"});
  ASSERT_TRUE(child.ok()) << child.Describe() << child.stderr_text;
  auto summaries = SummariesFromJson(child.stdout_text);
  ASSERT_TRUE(summaries.ok()) << summaries.status();
  ASSERT_EQ(summaries->size(), 1u);
  const MeasureSummary* summary = &(*summaries)[0];
  EXPECT_GE(summary->samples_ns.size(), 3);
  EXPECT_LE(summary->min_ns, summary->median_ns);
  EXPECT_LE(summary->median_ns, summary->p90_ns);
  EXPECT_GT(summary->peak_ratio, 0);
}

TEST(FusionMeasure, PairsBundles) {
  const std::string path = testing::TempDir() + "/measure_test_turns.fusion";
  ASSERT_TRUE(RunProgram({FUSION_MAKE_TINY_BUNDLE, path}).ok());
  const ChildResult child = RunProgram({FUSION_MEASURE, path, path});
  ASSERT_TRUE(child.ok()) << child.Describe() << child.stderr_text;
  auto summaries = SummariesFromJson(child.stdout_text);
  ASSERT_TRUE(summaries.ok()) << summaries.status();
  ASSERT_EQ(summaries->size(), 2u);
  for (const MeasureSummary& summary : *summaries) EXPECT_GE(summary.samples_ns.size(), 3);
}

TEST(FusionMeasure, RefusesWhatIsNoBundle) {
  const std::string path = testing::TempDir() + "/measure_test_bad.fusion";
  std::ofstream(path) << "not a bundle";
  const ChildResult child = RunProgram({FUSION_MEASURE, path, "--threads", "1"});
  EXPECT_EQ(child.exit_code, 1);
  EXPECT_FALSE(child.stderr_text.empty());
  EXPECT_EQ(RunProgram({FUSION_MEASURE}).exit_code, 2);
}

}  // namespace
}  // namespace fusion
