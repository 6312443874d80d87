// Runs fusion-measure as the worker does.
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/backends/process/child_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/loader/testing/tiny_bundle.h"
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

TEST(FusionMeasure, ASentinelIsTimedTooAndCanariesAreTheSameInEachRun) {
  const std::string path = testing::TempDir() + "/measure_test_canaries.fusion";
  ASSERT_TRUE(RunProgram({FUSION_MAKE_TINY_BUNDLE, path}).ok());
  std::vector<std::vector<double>> outputs;
  for (int run = 0; run < 2; ++run) {
    const ChildResult child = RunProgram({FUSION_MEASURE, "--canaries", "--sentinel", path, path, "--threads", "1"});
    ASSERT_TRUE(child.ok()) << child.Describe() << child.stderr_text;
    const auto summaries = SummariesFromJson(child.stdout_text);
    ASSERT_TRUE(summaries.ok()) << summaries.status();
    ASSERT_EQ(summaries->size(), 2u) << "the sentinel is last";
    for (const MeasureSummary& summary : *summaries) outputs.push_back(summary.outputs);
  }
  ASSERT_FALSE(outputs[0].empty());
  EXPECT_LE(outputs[0].size(), 32u);
  for (const std::vector<double>& other : outputs) EXPECT_EQ(other, outputs[0]);
  const ChildResult plain = RunProgram({FUSION_MEASURE, path, "--threads", "1"});
  EXPECT_TRUE(SummariesFromJson(plain.stdout_text)->front().outputs.empty()) << "they were not asked for";
}

TEST(FusionMeasure, TimesModelsInTurns) {
  const std::string path = testing::TempDir() + "/measure_test_models.fusion";
  ASSERT_TRUE(RunProgram({FUSION_MAKE_TINY_BUNDLE, path}).ok());
  const ChildResult child = RunProgram({FUSION_MEASURE, "--models", path, path, "--threads", "1"});
  ASSERT_TRUE(child.ok()) << child.Describe() << child.stderr_text;
  const auto json = nlohmann::json::parse(child.stdout_text);
  EXPECT_GE(json["rounds"], 5);
  EXPECT_GT(json["ratio"], 0);
  EXPECT_EQ(json["bundle"]["kernels"], 2);
  EXPECT_LE(json["unfused"]["p25_ns"], json["unfused"]["p75_ns"]);
  EXPECT_EQ(RunProgram({FUSION_MEASURE, "--models", path}).exit_code, 2);
}

TEST(FusionMeasure, TimesThePlansOfABundleInTurns) {
  const std::string path = testing::TempDir() + "/measure_test_plans.fusion";
  const auto built = BuildSharedObject(kTinyKernelSource);
  ASSERT_TRUE(built.ok()) << built.status();
  Manifest manifest = TinySpecialisedManifest();
  manifest.others[0] = TinySpecialisedManifest();
  ASSERT_TRUE(WriteTinyBundle(path, *built, manifest).ok());
  const ChildResult child = RunProgram({FUSION_MEASURE, "--plans", path, "--threads", "1"});
  ASSERT_TRUE(child.ok()) << child.Describe() << child.stderr_text;
  const auto json = nlohmann::json::parse(child.stdout_text);
  EXPECT_GE(json["rounds"], 5);
  ASSERT_EQ(json["plans"].size(), 2u);
  EXPECT_EQ(json["plans"][0]["ratio"], 1);
  EXPECT_EQ(json["plans"][0]["rounds"], json["rounds"]);
  EXPECT_GE(json["plans"][1]["rounds"], 5);
  EXPECT_LE(json["plans"][1]["rounds"], json["rounds"]);
  EXPECT_LE(json["plans"][1]["ratio_low"], json["plans"][1]["ratio"]);
  EXPECT_LE(json["plans"][1]["ratio"], json["plans"][1]["ratio_high"]);
  EXPECT_GT(json["plans"][1]["median_ns"], 0);
  EXPECT_EQ(RunProgram({FUSION_MEASURE, "--plans", path, path}).exit_code, 2);

  ASSERT_TRUE(RunProgram({FUSION_MAKE_TINY_BUNDLE, path}).ok());
  EXPECT_EQ(RunProgram({FUSION_MEASURE, "--plans", path, "--threads", "1"}).exit_code, 1) << "there is one plan";
}

TEST(FusionMeasure, VerifiesAModelByItsReference) {
  const std::string path = testing::TempDir() + "/measure_test_right.fusion";
  ASSERT_TRUE(RunProgram({FUSION_MAKE_TINY_BUNDLE, path}).ok());
  const ChildResult right = RunProgram({FUSION_MEASURE, "--verify", path, path, "--threads", "0"});
  ASSERT_TRUE(right.ok()) << right.Describe() << right.stderr_text;
  auto json = nlohmann::json::parse(right.stdout_text);
  EXPECT_EQ(json["verdict"], "OUTPUT_OK");
  EXPECT_EQ(json["outputs_total"], 2);

  // The kernel that it really computes, with another constant.
  std::string source = kTinyKernelSource;
  const size_t zero = source.find("> 0");
  ASSERT_NE(zero, std::string::npos) << source;
  source.replace(zero, 3, "> 1");
  const std::string wrong_path = testing::TempDir() + "/measure_test_wrong.fusion";
  const auto built = BuildSharedObject(source);
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_TRUE(WriteTinyBundle(wrong_path, *built, TinyManifest()).ok());
  const ChildResult wrong = RunProgram({FUSION_MEASURE, "--verify", wrong_path, path, "--threads", "0"});
  ASSERT_TRUE(wrong.ok()) << wrong.Describe() << wrong.stderr_text;
  json = nlohmann::json::parse(wrong.stdout_text);
  EXPECT_EQ(json["verdict"], "OUTPUT_WRONG");
  EXPECT_EQ(json["outputs"][0]["verdict"], "OUTPUT_WRONG") << "the worst comes first";
}

// With a stand-in for CUDA's driver, which runs on this processor.
TEST(FusionMeasure, StartsADriverConfined) {
  const std::vector<std::string> start = {FUSION_MEASURE, "--start-driver", "--confine", "cuda"};
  std::vector<std::string> on_the_shim = {"/usr/bin/env", "LD_LIBRARY_PATH=" FUSION_CUDA_SHIM_FOLDER};
  on_the_shim.insert(on_the_shim.end(), start.begin(), start.end());
  const ChildResult started = RunProgram(on_the_shim);
  EXPECT_TRUE(started.ok()) << started.Describe() << started.stderr_text;
  const std::string no_driver = "LD_LIBRARY_PATH=/nowhere";
  on_the_shim[1] = no_driver;
  if (const ChildResult absent = RunProgram(on_the_shim); !absent.ok()) {  // a machine may have the real one
    EXPECT_EQ(absent.exit_code, 1);
    EXPECT_THAT(absent.stderr_text, testing::HasSubstr("CUDA")) << absent.stderr_text;
  }
  EXPECT_EQ(RunProgram({FUSION_MEASURE, "--start-driver", "a.fusion"}).exit_code, 2);
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
