#include "compiler/measure/block_oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "compiler/backends/toolchain.h"
#include "compiler/pipeline/testing/run_block.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/bundle_reader.h"

namespace fusion {
namespace {

class CountingOracle : public LatencyOracle {
 public:
  explicit CountingOracle(int devices) : devices_(devices) {}
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler&) override {
    batches.push_back(questions.size());
    if (measuring) measuring(questions.size());
    return std::vector<LatencyAnswer>(questions.size(), LatencyAnswer{1000, LatencySource::kMeasured});
  }
  absl::StatusOr<bool> Knows(const std::string&) override { return known; }
  int Devices() const override { return devices_; }
  std::vector<size_t> batches;
  std::function<void(size_t)> measuring;  // gets the number of questions that are asked at once
  bool known = false;

 private:
  const int devices_;
};

// An oracle over a graph, for AVX-512, with `count` devices that measure.
struct Started {
  Started(const ecg::Graph& graph, int count) : devices(count) {
    context.device = &device;
    context.oracle = &devices;
    oracle.Start(&graph, &layouts);
  }
  CountingOracle devices;
  const DeviceModel device = testing::Avx512Device();
  const ValueLayouts layouts;
  CompileContext context;
  GraphBlockOracle oracle{context, 1};
};

class BlockOracleTest : public ::testing::Test {
 protected:
  // Makes twenty pairs of operators, each of another shape, and the first pair once more.
  BlockOracleTest() {
    for (int i = 1; i <= 21; ++i) {
      maker_.Out(maker_.Op("Relu", {maker_.Op("Exp", {maker_.In({8, i == 21 ? 16 : 16 * i})})}));
    }
  }
  static std::vector<FusionQuestion> Pairs(int from, int to) {
    std::vector<FusionQuestion> questions;
    for (int pair = from; pair < to; ++pair) questions.push_back({{2 * pair}, {2 * pair + 1}});
    return questions;
  }
  // Returns how many of `maybe` were answered, and how many pairs were measured for the batch.
  std::pair<int, size_t> Ask(int devices, const std::vector<FusionQuestion>& questions,
                             const std::vector<FusionQuestion>& maybe) {
    Started several(maker_.graph(), devices);
    auto answers = several.oracle.Compare(maker_.graph(), questions, maybe);
    EXPECT_TRUE(answers.ok()) << answers.status();
    EXPECT_EQ(answers->asked.size(), questions.size());
    EXPECT_EQ(answers->maybe.size(), maybe.size());
    int answered = 0;
    for (const auto& answer : answers->maybe) answered += answer.has_value() ? 1 : 0;
    EXPECT_EQ(several.devices.batches.size(), 1);
    return {answered, several.devices.batches[0] / 2};
  }
  testing::GraphMaker maker_;
};

// A question takes ten seconds, and there is a minute. The first round is asked whole, later rounds as far as time
// allows, in pairs, and then estimates answer.
TEST_F(BlockOracleTest, MeasuringEndsWithItsTime) {
  Started one(maker_.graph(), 1);
  double now = 0;
  one.devices.measuring = [&](size_t questions) { now += 10.0 * static_cast<double>(questions); };
  one.oracle.LimitMeasuring(60, [&] { return now; });
  const auto measured = [&](int from, int to) {
    const auto answers = one.oracle.Compare(maker_.graph(), Pairs(from, to), {});
    EXPECT_TRUE(answers.ok()) << answers.status();
    int count = 0;
    for (const FusionAnswer& answer : answers->asked) {
      EXPECT_EQ(IsMeasured(answer.fused.source), IsMeasured(answer.apart.source));
      EXPECT_GT(answer.fused.latency_ns, 0);
      count += IsMeasured(answer.fused.source) ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(measured(0, 1), 1);
  EXPECT_EQ(measured(1, 5), 2);
  EXPECT_EQ(now, 60);
  EXPECT_EQ(measured(5, 7), 0);
  EXPECT_EQ(measured(0, 3), 3);  // remembered from before
  EXPECT_EQ(now, 60);
  // Answers from the database take no time.
  one.devices.known = true;
  EXPECT_EQ(measured(10, 12), 2);
}

TEST_F(BlockOracleTest, IdleDevicesAnswerWhatMayBeAskedNext) {
  // Five questions occupy four devices for two turns, which leaves three places in the second turn and four in one
  // more.
  EXPECT_EQ(Ask(4, Pairs(0, 5), Pairs(5, 20)), std::pair(7, size_t{12}));
  EXPECT_EQ(Ask(4, Pairs(0, 4), Pairs(4, 20)), std::pair(4, size_t{8}));
  EXPECT_EQ(Ask(4, Pairs(0, 5), Pairs(5, 7)), std::pair(2, size_t{7}));
  // One device never has an idle place.
  EXPECT_EQ(Ask(1, Pairs(0, 5), Pairs(5, 20)), std::pair(0, size_t{5}));
}

TEST_F(BlockOracleTest, EqualQuestionsAreOneAndCostNoTurn) {
  EXPECT_EQ(Ask(1, Pairs(0, 5), Pairs(20, 21)), std::pair(1, size_t{5}));
}

class NoToolchain : public Toolchain {
 public:
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override {
    return std::vector<std::string>(units.size(), "a binary");
  }
};

// Records the questions that it gets.
class Recorder : public LatencyOracle {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override {
    std::vector<std::string> keys;
    for (const LatencyQuestion& question : questions) keys.push_back(question.key);
    ASSIGN_OR_RETURN(bundles, bundler.MakeBundles(keys));
    asked.assign(questions.begin(), questions.end());
    return std::vector<LatencyAnswer>(questions.size(), LatencyAnswer{1000, LatencySource::kMeasured});
  }
  absl::StatusOr<bool> Knows(const std::string& key) override {
    return std::any_of(asked.begin(), asked.end(), [&](const LatencyQuestion& q) { return q.key == key; });
  }
  std::vector<LatencyQuestion> asked;
  std::vector<std::string> bundles;
};

TEST_F(BlockOracleTest, ApartIsOneRunInWhichTheSecondReadsWhatTheFirstWrote) {
  Recorder recorder;
  NoToolchain toolchain;
  const DeviceModel device = testing::Avx512Device();
  const ValueLayouts layouts;
  CompileContext context;
  context.device = &device;
  context.oracle = &recorder;
  context.toolchain = &toolchain;
  GraphBlockOracle oracle(context, 1);
  oracle.Start(&maker_.graph(), &layouts);
  const FusionQuestion question{{0}, {1}};
  EXPECT_FALSE(oracle.Knows(maker_.graph(), {{2}, {3}}).value());
  const auto answers = oracle.Compare(maker_.graph(), {question}, {});
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(recorder.asked.size(), 2u);
  EXPECT_EQ(recorder.asked[0].group, recorder.asked[1].group);  // a paired measurement
  EXPECT_NE(recorder.asked[0].key, recorder.asked[1].key);
  EXPECT_TRUE(oracle.Knows(maker_.graph(), question).value());
  const std::string path = ::testing::TempDir() + "/apart.fusion";
  std::ofstream(path, std::ios::binary) << recorder.bundles[1];
  const auto bundle = BundleReader::Open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const Manifest& manifest = (*bundle)->manifest();
  ASSERT_EQ(manifest.launches.size(), 2u);
  EXPECT_EQ(manifest.inputs.size(), 1u);
  ASSERT_EQ(manifest.outputs.size(), 2u);
  const int between = manifest.outputs[0].buffer;
  EXPECT_THAT(manifest.launches[0].buffers, ::testing::ElementsAre(manifest.inputs[0].buffer, between));
  EXPECT_THAT(manifest.launches[1].buffers, ::testing::ElementsAre(between, manifest.outputs[1].buffer));
}

// Two layers of one structure; the products cannot be one kernel with the operators in front of them.
TEST_F(BlockOracleTest, AReasonNamesItsOwnBlock) {
  testing::GraphMaker maker;
  for (int layer = 0; layer < 2; ++layer) {
    const ecg::ValueId x = maker.In({1, 64, 28, 28});
    maker.Out(maker.Op("Conv", {maker.Op("Exp", {x}), maker.Weight({64, 64, 3, 3})},
                       {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  }
  Started one(maker.graph(), 1);
  GraphBlockOracle& oracle = one.oracle;
  for (ecg::NodeId first : {0, 2}) {
    const std::string own = maker.graph().value(maker.graph().node(first + 1).outputs[0]).name;
    const absl::Status status = oracle.CanSchedule(maker.graph(), {first, first + 1});
    EXPECT_THAT(status.message(), ::testing::HasSubstr("'" + own + "'"));
  }
}

TEST_F(BlockOracleTest, WhatACoreDoesNotHoldIsRefused) {
  testing::GraphMaker maker;
  ecg::ValueId x = maker.In({64, 64});
  std::vector<ecg::NodeId> nodes;
  for (int i = 0; i < 800; ++i) {
    x = maker.Op("Exp", {x});
    nodes.push_back(i);
  }
  maker.Out(x);
  Started one(maker.graph(), 1);
  GraphBlockOracle& oracle = one.oracle;
  EXPECT_THAT(oracle.CanSchedule(maker.graph(), nodes).message(), ::testing::HasSubstr("exceeds the instruction cache"));
  EXPECT_TRUE(oracle.CanSchedule(maker.graph(), {nodes.begin(), nodes.begin() + 100}).ok());
}

}  // namespace
}  // namespace fusion
