#include "compiler/accelerator/choose_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compiler/accelerator/testing/small_models.h"
#include "compiler/backends/dsa/dsa_device_model.h"
#include "compiler/backends/dsa/toolchain/dsa_toolchain.h"
#include "runtime/loader/session.h"

namespace fusion::accelerator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Says that a program takes what its measurement bundle says, and that the second is the fastest.
class SecondIsFastest : public LatencyOracle {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override {
    std::vector<LatencyAnswer> answers;
    std::vector<std::string> keys;
    for (const LatencyQuestion& question : questions) {
      answers.push_back({answers.size() == 1 ? 1.0 : 5.0, LatencySource::kMeasured});
      keys.push_back(question.key);
      descriptions.push_back(question.description);
    }
    auto bundles = bundler.MakeBundles(keys);
    if (!bundles.ok()) return bundles.status();
    for (size_t b = 0; b < bundles->size(); ++b) {
      const auto bundle = Bundle::FromBytes((*bundles)[b]);
      if (!bundle.ok()) return bundle.status();
      const auto session = Session::Create(*bundle, 1);
      if (!session.ok()) return session.status();
      EXPECT_NEAR(1e9 * (*session)->simulated_time()->seconds, questions[b].model_latency_ns, 1);
    }
    return answers;
  }
  std::vector<std::string> descriptions;
};

class ChooseProgramTest : public ::testing::Test {
 protected:
  ChooseProgramTest() : graph_(GraphOf(kConvolutions)), toolchain_(MakeDsaToolchain()) {
    model_ = *PlaceModel(graph_, *dsa::StoredMachine("stcp920"), DType::kF32);
    device_ = *DsaDeviceOf("dsa");
    context_.device = &device_;
    context_.oracle = &estimates_;
    context_.toolchain = toolchain_.get();
  }

  const ecg::Graph graph_;
  const std::unique_ptr<LocalToolchain> toolchain_;
  ModelOnMachine model_;
  DeviceModel device_;
  ModelOracle estimates_;
  CompileContext context_;
  CompileAccount account_;
};

TEST_F(ChooseProgramTest, TakesTheFastestByTheSimulatorsCount) {
  const auto chosen = ChooseProgram(model_, VariantsFor("dnnfusion"), context_, &account_);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->binary, chosen->program.text);
  ASSERT_EQ(account_.alternatives.size(), 3u);
  double best = 1e300;
  for (const PlanAlternative& one : account_.alternatives) best = std::min(best, one.estimate_ns);
  EXPECT_EQ(1e9 * chosen->program.timing.seconds, best);
  EXPECT_EQ(account_.questions, 3);
  EXPECT_EQ(account_.from_model, 3);
}

TEST_F(ChooseProgramTest, AMeasurementDecides) {
  SecondIsFastest oracle;
  context_.oracle = &oracle;
  const auto chosen = ChooseProgram(model_, {"graph_turbo", "astitch_like"}, context_, &account_);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->program.variant, "astitch_like");
  EXPECT_THAT(oracle.descriptions[0], HasSubstr("program graph_turbo: "));
  EXPECT_EQ(account_.measured, 2);
  EXPECT_FALSE(account_.alternatives[0].chosen);
  EXPECT_TRUE(account_.alternatives[1].chosen);
  EXPECT_DOUBLE_EQ(account_.alternatives[1].ratio, 0.2);
}

TEST_F(ChooseProgramTest, OneProgramAsksNobody) {
  EXPECT_THAT(VariantsFor("none"), ElementsAre("tvm_like"));
  const auto chosen = ChooseProgram(model_, VariantsFor("none"), context_, &account_);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(account_.questions, 0);
  EXPECT_TRUE(account_.alternatives.empty());
}

TEST_F(ChooseProgramTest, AModelThatComputesNothingAsksNobody) {
  const ecg::Graph graph = GraphOf(kNothingToCompute);
  model_ = *PlaceModel(graph, *dsa::StoredMachine("stcp920"), DType::kF32);
  const auto chosen = ChooseProgram(model_, VariantsFor("dnnfusion"), context_, &account_);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->program.instructions, 0);
  EXPECT_EQ(account_.questions, 0);
  EXPECT_TRUE(account_.alternatives.empty());
}

TEST_F(ChooseProgramTest, TheFirstErrorIsToldWhereNoProgramCanBeMade) {
  model_.machine.groups[0].local_bytes = {64, 64, 64, "test"};
  const auto chosen = ChooseProgram(model_, VariantsFor("dnnfusion"), context_, &account_);
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kResourceExhausted) << chosen.status();
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr(" bytes of 64 "));
}

TEST_F(ChooseProgramTest, ACancelledJobEnds) {
  context_.cancelled = [] { return true; };
  EXPECT_EQ(ChooseProgram(model_, VariantsFor("none"), context_, &account_).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fusion::accelerator
