#include "compiler/pipeline/plan_candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/pipeline/compile.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_reader.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Measures that one kernel is always faster than two, or always slower.
class OneSidedOracle : public LatencyOracle {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler&) override {
    std::vector<LatencyAnswer> answers;
    for (const LatencyQuestion& question : questions) {
      const bool apart = absl::StrContains(question.description, " apart");
      answers.push_back({apart == fused_is_faster ? 9000.0 : 1000.0, source});
    }
    return answers;
  }
  bool fused_is_faster = false;
  LatencySource source = LatencySource::kMeasured;
};

// The same with a memory, as a profile database is one. Every other schedule than the scheduler's own is twice as fast.
class RememberingOracle : public OneSidedOracle {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override {
    ASSIGN_OR_RETURN(std::vector<LatencyAnswer> answers, OneSidedOracle::Latency(questions, bundler));
    for (size_t q = 0; q < questions.size(); ++q) {
      const bool trial = absl::StrContains(questions[q].description, "=");
      if (trial) answers[q].latency_ns /= 2;
      if (!known_.insert(questions[q].key).second) {
        answers[q].source = LatencySource::kDatabase;
        continue;
      }
      ++measured;
      if (!questions[q].workload.empty()) {
        trials_[questions[q].workload].push_back({questions[q].choices, answers[q].latency_ns});
      }
    }
    return answers;
  }
  absl::StatusOr<bool> Knows(const std::string& key) override { return known_.count(key) != 0; }
  absl::StatusOr<std::vector<KnownTrial>> Trials(const std::string& workload) override { return trials_[workload]; }
  int measured = 0;

 private:
  std::set<std::string> known_;
  std::map<std::string, std::vector<KnownTrial>> trials_;
};

// Answers with a given comparison, and opens what it would measure.
class GivenPlans : public PlanOracle {
 public:
  absl::StatusOr<PlanAnswers> Compare(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                      PlanBundler& bundler) override {
    EXPECT_EQ(plans.size(), 1u);
    keys = {reference.key, plans[0].key};
    descriptions = {reference.description, plans[0].description};
    if (!ratio.has_value()) return PlanAnswers{{std::nullopt}, "no worker"};
    const std::string path = absl::StrCat(::testing::TempDir(), "/plan_candidates_", getpid(), ".fusion");
    RETURN_IF_ERROR(bundler.WriteBundle({0}, path));
    const auto bundle = BundleReader::Open(path);
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    if (bundle.ok()) {
      launches.clear();
      for (size_t p = 0; p < bundle.value()->manifest().program_count(); ++p) {
        launches.push_back((*bundle)->manifest().program(p).launches.size());
      }
    }
    std::filesystem::remove(path);
    return PlanAnswers{{PlanComparison{*ratio, *ratio - spread, *ratio + spread, 1000 * *ratio, 1000, 20}}, ""};
  }
  std::optional<double> ratio;
  double spread = 0.001;  // of the confidence interval, to either side
  std::vector<std::string> keys, descriptions;
  std::vector<size_t> launches;  // of each program
};

// Answers with a ratio for each plan by what its description contains, 1 where nothing is said.
class RatioOf : public PlanOracle {
 public:
  absl::StatusOr<PlanAnswers> Compare(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                      PlanBundler&) override {
    descriptions = {reference.description};
    PlanAnswers answers;
    for (const PlanQuestion& plan : plans) {
      descriptions.push_back(plan.description);
      const double ratio = !fastest.empty() && absl::StrContains(plan.description, fastest) ? 0.5 : 1;
      answers.comparisons.push_back(PlanComparison{ratio, ratio - 0.001, ratio + 0.001, 1000 * ratio, 1000, 20});
    }
    return answers;
  }
  std::string fastest;
  std::vector<std::string> descriptions;
};

class TextToolchain : public Toolchain {
 public:
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override {
    std::vector<std::string> binaries;
    for (const BuildUnit& unit : units) binaries.push_back(unit.source);
    calls.push_back(binaries);
    return binaries;
  }
  std::vector<std::vector<std::string>> calls;  // the texts of each call
};

// The end of a classifier.
void MakeClassifier(int64_t rows, int64_t terms, testing::GraphMaker* maker) {
  const ecg::ValueId product = maker->Op("MatMul", {maker->In({rows, terms}), maker->Weight({terms, 24})});
  maker->Out(maker->Op("Softmax", {maker->Op("Add", {product, maker->Weight({24})})}, {{"axis", int64_t{-1}}}));
}

// A classifier whose softmax is fused by estimates and stays apart by these measurements.
class PlanCandidates : public ::testing::Test {
 protected:
  PlanCandidates() {
    MakeClassifier(32, 128, &maker_);
    files_.graph = &maker_.graph();
    context_.device = &device_;
    context_.oracle = &kernels_;
    context_.toolchain = &toolchain_;
    context_.plans = &plans_;
    options_.tune = "off";
  }
  CompileAccount CompileIt() {
    const std::string path = absl::StrCat(::testing::TempDir(), "/plan_candidates_out_", getpid(), ".fusion");
    auto account = Compile(files_, options_, context_, path);
    EXPECT_TRUE(account.ok()) << account.status();
    if (!account.ok()) return {};
    const auto bundle = BundleReader::Open(path);
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    if (bundle.ok()) shipped_ = (*bundle)->manifest().launches.size();
    std::filesystem::remove(path);
    return *account;
  }

  testing::GraphMaker maker_;
  ModelFiles files_;
  CompileOptions options_;
  DeviceModel device_ = testing::Avx512Device();
  OneSidedOracle kernels_;
  GivenPlans plans_;
  TextToolchain toolchain_;
  CompileContext context_;
  size_t shipped_ = 0;  // launches of the bundle
};

TEST_F(PlanCandidates, TheFasterPlanIsInTheBundle) {
  plans_.ratio = 0.9;
  const CompileAccount account = CompileIt();
  EXPECT_THAT(plans_.launches, ElementsAre(1, 2)) << "both plans are programs of one bundle; by estimates it is the "
                                                     "offline plan again";
  EXPECT_NE(plans_.keys[0], plans_.keys[1]);
  EXPECT_THAT(plans_.descriptions, ElementsAre("plan offline, 1 kernel", "plan by measurements, 2 kernels"));
  EXPECT_EQ(shipped_, 2u);
  EXPECT_EQ(account.kernels, 2);
  ASSERT_EQ(account.alternatives.size(), 2u);
  EXPECT_FALSE(account.alternatives[0].chosen);
  EXPECT_TRUE(account.alternatives[1].chosen);
  EXPECT_EQ(account.alternatives[1].ratio, 0.9);
  EXPECT_EQ(account.alternatives[0].median_ns, 1000);
}

TEST_F(PlanCandidates, ASlowerPlanByMeasurementsIsNotReturned) {
  plans_.ratio = 1.04;
  const CompileAccount account = CompileIt();
  EXPECT_EQ(shipped_, 1u);
  EXPECT_EQ(account.kernels, 1);
  EXPECT_TRUE(account.alternatives[0].chosen);
  EXPECT_FALSE(account.alternatives[1].chosen);
  EXPECT_GT(account.measured, 0) << "how the plan was found stays in the account";
  const auto plan = nlohmann::json::parse(account.plan_json);
  EXPECT_EQ(plan["fusion_blocks"].size(), 1u) << "plan.json is that of the plan in the bundle";
  ASSERT_EQ(plan["alternatives"].size(), 2u);
  EXPECT_EQ(plan["alternatives"][0]["chosen"], true);
  EXPECT_EQ(plan["alternatives"][1]["ratio"], 1.04);
}

TEST_F(PlanCandidates, OfEquallyFastPlansThatByEstimatesIsReturned) {
  for (const double ratio : {1.0, 1 - kEqualPlans / 2}) {
    plans_.ratio = ratio;
    EXPECT_TRUE(CompileIt().alternatives[0].chosen) << ratio;
    EXPECT_EQ(shipped_, 1u);
  }
}

// On a busy machine the median of a few rounds says little.
TEST_F(PlanCandidates, AGainThatIsNotCertainIsNotTaken) {
  plans_.ratio = 0.93;
  plans_.spread = 0.06;
  EXPECT_TRUE(CompileIt().alternatives[1].chosen);
  plans_.spread = 0.08;
  EXPECT_TRUE(CompileIt().alternatives[0].chosen);
  EXPECT_EQ(shipped_, 1u);
}

// The measurement decides between the plans as they ship, so the returned bundle needs no further build.
TEST_F(PlanCandidates, TheWinnersFilesAreThoseThatWereMeasured) {
  plans_.ratio = 0.9;
  CompileIt();
  ASSERT_EQ(toolchain_.calls.size(), 2u);
  EXPECT_THAT(toolchain_.calls[0], ::testing::IsSupersetOf(toolchain_.calls[1]));
}

TEST_F(PlanCandidates, ThePlanByMeasurementsStaysWhereNobodyCompares) {
  plans_.ratio = std::nullopt;
  const CompileAccount account = CompileIt();
  EXPECT_EQ(shipped_, 2u);
  EXPECT_EQ(account.not_compared, "no worker");
  EXPECT_TRUE(account.alternatives[1].chosen);
  EXPECT_EQ(account.alternatives[0].rounds, 0);
  EXPECT_THAT(account.plan_json, HasSubstr("no worker"));
}

TEST_F(PlanCandidates, EqualPlansAreNotMeasured) {
  kernels_.fused_is_faster = true;
  const CompileAccount account = CompileIt();
  EXPECT_TRUE(plans_.keys.empty()) << "both plans fuse the softmax";
  EXPECT_TRUE(account.alternatives.empty());
  EXPECT_EQ(shipped_, 1u);
}

TEST_F(PlanCandidates, APlanThatRestsOnEstimatesIsNotComparedWithItself) {
  kernels_.source = LatencySource::kModel;
  EXPECT_TRUE(CompileIt().alternatives.empty());
  EXPECT_TRUE(plans_.keys.empty());
  kernels_.source = LatencySource::kMeasured;
  context_.plans = nullptr;
  EXPECT_TRUE(CompileIt().alternatives.empty());
  EXPECT_EQ(shipped_, 2u);
}

TEST_F(PlanCandidates, TheKeysAreThoseOfThePlanAndTheNumberOfThreads) {
  plans_.ratio = 1;
  CompileIt();
  const std::vector<std::string> first = plans_.keys;
  CompileIt();
  EXPECT_EQ(plans_.keys, first);
  options_.threads = 2;
  CompileIt();
  EXPECT_NE(plans_.keys[0], first[0]);
}

// `auto` was offered several plans: the fastest measured one ships, whatever was estimated.
TEST_F(PlanCandidates, OfSeveralPlannersPlansTheFastestMeasuredOneShips) {
  RatioOf ratios;
  context_.plans = &ratios;
  options_.planner = "auto";
  ratios.fastest = "plan none";
  const CompileAccount account = CompileIt();
  EXPECT_EQ(shipped_, 3u) << "each operator is a kernel";
  EXPECT_EQ(account.kernels, 3);
  EXPECT_THAT(ratios.descriptions, ::testing::Contains(HasSubstr("plan none, 3 kernels")));
  EXPECT_THAT(ratios.descriptions, ::testing::Contains(HasSubstr("plan dnnfusion by measurements, 2 kernels")));
  const auto plan = nlohmann::json::parse(account.plan_json);
  int chosen = 0;
  for (const auto& one : plan["alternatives"]) {
    chosen += one["chosen"] == true ? 1 : 0;
    EXPECT_EQ(one["chosen"] == true, one["plan"] == "none") << one.dump();
  }
  EXPECT_EQ(chosen, 1);
}

// Only `none` is measured whatever its estimate is.
TEST_F(PlanCandidates, PlansThatAreEstimatedFarSlowerAreNotMeasured) {
  testing::GraphMaker long_rows;
  MakeClassifier(4, 4096, &long_rows);
  files_.graph = &long_rows.graph();
  RatioOf ratios;
  context_.plans = &ratios;
  options_.planner = "auto";
  const CompileAccount account = CompileIt();
  const auto estimate = [&](const char* plan) {
    for (const PlanAlternative& one : account.alternatives) {
      if (one.plan == plan) return one.estimate_ns;
    }
    ADD_FAILURE() << plan;
    return 0.0;
  };
  ASSERT_GT(estimate("souffle-paper"), 2 * estimate("dnnfusion")) << "one task, which multiplies alone";
  EXPECT_THAT(ratios.descriptions, ::testing::Contains(HasSubstr("plan none")));
  EXPECT_THAT(ratios.descriptions, ::testing::Not(::testing::Contains(HasSubstr("souffle-paper"))));
}

// Rows of 2 MiB fit the cores of this device, and not the typical core's, on which the softmax would read what another
// phase computed; the plan does not allow that.
TEST_F(PlanCandidates, APlanThatTheTypicalCoreDividesIsMeasuredAsItIs) {
  testing::GraphMaker long_rows;
  const ecg::ValueId bent = long_rows.Op("Tanh", {long_rows.In({4, 1 << 19})});
  long_rows.Out(long_rows.Op("Softmax", {bent}, {{"axis", int64_t{-1}}}));
  MakeClassifier(32, 128, &long_rows);
  files_.graph = &long_rows.graph();
  RatioOf ratios;
  context_.plans = &ratios;
  options_.planner = "auto";
  options_.threads = 2;
  device_.parallel_units = 2;
  for (MemoryLevel& level : device_.memory) {
    if (level.name == "L2") level.size_bytes = 64 << 20;
    if (level.name == "L3") level.size_bytes = 256 << 20;
  }
  ratios.fastest = "plan dnnfusion,";
  const CompileAccount account = CompileIt();
  const auto by_estimates = std::find_if(account.alternatives.begin(), account.alternatives.end(),
                                         [](const PlanAlternative& one) { return one.plan == "dnnfusion"; });
  ASSERT_NE(by_estimates, account.alternatives.end());
  EXPECT_GT(by_estimates->rounds, 0);
  EXPECT_EQ(shipped_, 2u) << "by measurements the classifier is two kernels";
  EXPECT_EQ(account.kernels, 2);
}

// Whole plans are compared although no planner measured a kernel.
TEST_F(PlanCandidates, PlansByEstimatesOfSeveralPlannersAreMeasuredToo) {
  RatioOf ratios;
  kernels_.source = LatencySource::kModel;
  context_.plans = &ratios;
  options_.planner = "auto";
  CompileIt();
  EXPECT_GE(ratios.descriptions.size(), 2u);
}

TEST_F(PlanCandidates, WithoutAComparisonThePlansSayWhatWasEstimated) {
  context_.plans = nullptr;
  kernels_.source = LatencySource::kModel;
  options_.planner = "auto";
  const CompileAccount account = CompileIt();
  ASSERT_GE(account.alternatives.size(), 3u);
  EXPECT_TRUE(account.alternatives[0].chosen);
  EXPECT_THAT(account.alternatives[0].reason, HasSubstr("estimated the fastest as a whole"));
  for (size_t a = 1; a < account.alternatives.size(); ++a) {
    EXPECT_FALSE(account.alternatives[a].chosen);
    EXPECT_GE(account.alternatives[a].estimate_ns, account.alternatives[0].estimate_ns);
  }
  const auto plan = nlohmann::json::parse(account.plan_json);
  EXPECT_EQ(plan["alternatives"].size(), account.alternatives.size());
  EXPECT_THAT(account.plan_json, HasSubstr("estimated the fastest as a whole"));
  EXPECT_THAT(account.passes, ::testing::Contains(::testing::Field(&StageSeconds::stage, "plan: dnnfusion")));
}

// A first compilation found the softmax faster within the product's kernel, and tuned that kernel; a second one finds
// it faster apart.
class TunedCandidates : public PlanCandidates {
 protected:
  TunedCandidates() {
    options_.tune = "quick";
    context_.oracle = &memory_;
    context_.plans = &ratios_;
  }
  void TuneTheFusedPlan() {
    memory_.fused_is_faster = true;
    ratios_.fastest = "by measurements";
    EXPECT_EQ(CompileIt().tuned, 1);
    memory_.fused_is_faster = false;
  }
  RememberingOracle memory_;
  RatioOf ratios_;
};

TEST_F(TunedCandidates, TheOfflineStructureTakesTheSchedulesThatTuningFound) {
  TuneTheFusedPlan();
  EXPECT_THAT(ratios_.descriptions, ElementsAre("plan offline, 1 kernel", "plan by measurements, 1 kernel"))
      << "the offline structure with tuned schedules is the plan by measurements";
  ratios_.fastest = "with tuned schedules";
  const CompileAccount account = CompileIt();
  EXPECT_THAT(ratios_.descriptions, ElementsAre("plan offline, 1 kernel", "plan offline with tuned schedules, 1 kernel",
                                                "plan by measurements, 2 kernels"));
  EXPECT_EQ(shipped_, 1u);
  EXPECT_EQ(account.kernels, 1);
  EXPECT_EQ(account.tuned, 1) << "the account tells of the plan in the bundle";
  ASSERT_EQ(account.alternatives.size(), 3u);
  EXPECT_TRUE(account.alternatives[1].chosen);
  EXPECT_EQ(nlohmann::json::parse(account.plan_json)["alternatives"][1]["plan"], "offline with tuned schedules");
}

// The softmax, which is a kernel of the plan that was made and of that of `none`, was tuned.
TEST_F(TunedCandidates, AnOfferThatIsTheFastestTakesThemToo) {
  options_.planner = "auto";
  ratios_.fastest = "plan none";
  const CompileAccount account = CompileIt();
  EXPECT_EQ(ratios_.descriptions[0], "plan none, 3 kernels") << "the reference of what was compared last";
  EXPECT_EQ(ratios_.descriptions.back(), "plan none with tuned schedules, 3 kernels");
  const auto find = [&](const std::string& name) {
    return std::find_if(account.alternatives.begin(), account.alternatives.end(),
                        [&](const PlanAlternative& one) { return one.plan == name; });
  };
  ASSERT_NE(find("none with tuned schedules"), account.alternatives.end());
  EXPECT_TRUE(find("none with tuned schedules")->chosen);
  EXPECT_EQ(find("none with tuned schedules")->ratio, 0.25) << "half of half";
  EXPECT_FALSE(find("none")->chosen);
  EXPECT_EQ(shipped_, 3u);
  EXPECT_GT(account.tuned, 0) << "the account tells of the plan in the bundle";
  options_.tune = "off";
  EXPECT_EQ(CompileIt().tuned, 0);
  EXPECT_THAT(ratios_.descriptions, ::testing::Not(::testing::Contains(HasSubstr("with tuned schedules"))));
}

TEST_F(TunedCandidates, NothingIsMeasuredForThem) {
  CompileIt();
  EXPECT_THAT(ratios_.descriptions, ::testing::Not(::testing::Contains(HasSubstr("with tuned schedules"))))
      << "nobody has tuned the fused kernel";
  const int measured = memory_.measured;
  context_.plans = nullptr;
  CompileIt();
  EXPECT_EQ(memory_.measured, measured) << "without a comparison of whole plans, as many questions are asked";
}

TEST_F(TunedCandidates, OfEquallyFastPlansTheOneWithAnOfflineStructureIsReturned) {
  TuneTheFusedPlan();
  ratios_.fastest = ",";  // all but the reference
  CompileAccount account = CompileIt();
  EXPECT_TRUE(account.alternatives[1].chosen) << "offline with tuned schedules stands in front of by measurements";
  ratios_.fastest = "";  // all are equally fast
  account = CompileIt();
  EXPECT_TRUE(account.alternatives[0].chosen) << "the offline plan depends on fewer things";
  EXPECT_EQ(account.tuned, 0);
}

TEST_F(TunedCandidates, WithoutTuningSchedulesStayTheSchedulers) {
  TuneTheFusedPlan();
  options_.tune = "off";
  CompileIt();
  EXPECT_THAT(ratios_.descriptions, ElementsAre("plan offline, 1 kernel", "plan by measurements, 2 kernels"));
}

// A shuffle in front of a product over the shuffled channels: without it the weights are permuted. The softmax behind
// it is there to be measured.
class ShuffledCandidates : public PlanCandidates {
 protected:
  ShuffledCandidates() {
    const ecg::ValueId x = shuffled_.In({32, 128});
    const ecg::ValueId split = shuffled_.Op("Reshape", {x, shuffled_.Ints({32, 2, 64})});
    const ecg::ValueId turned = shuffled_.Op("Transpose", {split}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    const ecg::ValueId y = shuffled_.Op("Reshape", {turned, shuffled_.Ints({32, 128})});
    const ecg::ValueId product = shuffled_.Op("MatMul", {y, shuffled_.Weight({128, 24})});
    shuffled_.Out(shuffled_.Op("Softmax", {product}, {{"axis", int64_t{-1}}}));
    files_.graph = &shuffled_.graph();
    context_.plans = &ratios_;
  }
  testing::GraphMaker shuffled_;
  RatioOf ratios_;
};

TEST_F(ShuffledCandidates, ThePlanWithPermutationsCarriedShipsWhereItIsMeasuredFaster) {
  ratios_.fastest = "permutations carried";
  const CompileAccount account = CompileIt();
  EXPECT_THAT(ratios_.descriptions, ::testing::Contains(HasSubstr("plan permutations carried")));
  const auto carried = std::find_if(account.alternatives.begin(), account.alternatives.end(),
                                    [](const PlanAlternative& one) { return one.plan == "permutations carried"; });
  ASSERT_NE(carried, account.alternatives.end());
  EXPECT_TRUE(carried->chosen);
  EXPECT_EQ(account.plan_json.find("Transpose"), std::string::npos) << account.plan_json;
}

TEST_F(ShuffledCandidates, AnotherPlanShipsWhereItIsNot) {
  const CompileAccount account = CompileIt();
  EXPECT_THAT(account.plan_json, HasSubstr("Transpose")) << "the plan in the bundle moves the channels";
  EXPECT_THAT(ratios_.descriptions, ::testing::Contains(HasSubstr("plan permutations carried")));
  const auto is_not_offered = ::testing::Not(::testing::Contains(HasSubstr("plan permutations carried")));
  options_.size = "small";
  CompileIt();
  EXPECT_THAT(ratios_.descriptions, is_not_offered) << "it may hold a weight twice";
  options_.size = "any";
  options_.disabled_passes = {"carry-permutations"};
  CompileIt();
  EXPECT_THAT(ratios_.descriptions, is_not_offered);
}

// An equal bundle from equal questions: nothing of the account that depends on time is in plan.json.
TEST_F(PlanCandidates, ThePlanOfSeveralPlannersIsReproducible) {
  context_.plans = nullptr;
  options_.planner = "auto";
  EXPECT_EQ(CompileIt().plan_json, CompileIt().plan_json);
}

}  // namespace
}  // namespace fusion
