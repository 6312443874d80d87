#include "compiler/measure/fusion_oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "compiler/measure/testing/pairs.h"

namespace fusion {
namespace {

// An oracle over a graph, for AVX-512, with `count` devices that measure.
struct Started {
  Started(const ecg::Graph& graph, int count) : devices(count) {
    context.device = &device;
    context.oracle = &devices;
    oracle.Start(&graph, &layouts);
  }
  testing::CountingOracle devices;
  const DeviceModel device = testing::Avx512Device();
  const ValueLayouts layouts;
  CompileContext context;
  GraphFusionOracle oracle{context, 1};
};

class FusionOracleTest : public ::testing::Test {
 protected:
  // One fusion block of two nodes, or two.
  static FusionComparison Pair(int producer) {
    const FusionBlock fused = {producer, producer + 1}, first = {producer}, second = {producer + 1};
    return {{{fused}, {first, second}}};
  }
  static std::vector<FusionComparison> Pairs(int from, int to) {
    std::vector<FusionComparison> questions;
    for (int pair = from; pair < to; ++pair) questions.push_back(Pair(2 * pair));
    return questions;
  }
  // Returns how many of `maybe` were answered, and how many pairs were measured for the batch.
  std::pair<int, size_t> Ask(int devices, const std::vector<FusionComparison>& questions,
                             const std::vector<FusionComparison>& maybe) {
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
  const testing::GraphMaker maker_ = testing::TwentyPairs();
};

TEST_F(FusionOracleTest, IdleDevicesAnswerWhatMayBeAskedNext) {
  // Five questions occupy four devices for two turns, which leaves three places in the second turn and four in one
  // more.
  EXPECT_EQ(Ask(4, Pairs(0, 5), Pairs(5, 20)), std::pair(7, size_t{12}));
  EXPECT_EQ(Ask(4, Pairs(0, 4), Pairs(4, 20)), std::pair(4, size_t{8}));
  EXPECT_EQ(Ask(4, Pairs(0, 5), Pairs(5, 7)), std::pair(2, size_t{7}));
  // One device never has an idle place.
  EXPECT_EQ(Ask(1, Pairs(0, 5), Pairs(5, 20)), std::pair(0, size_t{5}));
}

TEST_F(FusionOracleTest, EqualQuestionsAreOneAndCostNoTurn) {
  EXPECT_EQ(Ask(1, Pairs(0, 5), Pairs(20, 21)), std::pair(1, size_t{5}));
}

// Records the questions that it gets, and answers question q of a call with 1000 + q.
class Recorder : public LatencyOracle {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler&) override {
    asked.assign(questions.begin(), questions.end());
    std::vector<LatencyAnswer> answers;
    for (size_t q = 0; q < questions.size(); ++q) {
      answers.push_back({1000.0 + static_cast<double>(q), LatencySource::kMeasured});
    }
    return answers;
  }
  absl::StatusOr<bool> Knows(const std::string& key) override {
    return std::any_of(asked.begin(), asked.end(), [&](const LatencyQuestion& q) { return q.key == key; });
  }
  std::vector<LatencyQuestion> asked;
};

TEST_F(FusionOracleTest, TheTwoSidesAreMeasuredInTurns) {
  Recorder recorder;
  const DeviceModel device = testing::Avx512Device();
  const ValueLayouts layouts;
  CompileContext context;
  context.device = &device;
  context.oracle = &recorder;
  GraphFusionOracle oracle(context, 1);
  oracle.Start(&maker_.graph(), &layouts);
  const FusionComparison question = Pair(0);
  EXPECT_FALSE(oracle.Knows(maker_.graph(), Pair(2)).value());
  const auto answers = oracle.Compare(maker_.graph(), {question}, {});
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(recorder.asked.size(), 2u);
  EXPECT_EQ(recorder.asked[0].group, recorder.asked[1].group);  // a paired measurement
  EXPECT_NE(recorder.asked[0].key, recorder.asked[1].key);
  EXPECT_TRUE(oracle.Knows(maker_.graph(), question).value());
}

TEST_F(FusionOracleTest, SeveralWaysAreOneComparison) {
  Recorder recorder;
  const DeviceModel device = testing::Avx512Device();
  const ValueLayouts layouts;
  CompileContext context;
  context.device = &device;
  context.oracle = &recorder;
  GraphFusionOracle oracle(context, 1);
  oracle.Start(&maker_.graph(), &layouts);
  FusionComparison three = Pair(0);
  FusionBlock across_a_barrier = {0, 1};
  across_a_barrier.inner = {{0, 1, maker_.graph().node(0).outputs[0], Scope::kDevice, Scope::kDevice}};
  three.ways.push_back({across_a_barrier});
  const auto answers = oracle.Compare(maker_.graph(), {Pair(2), three, Pair(4)}, {});
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(recorder.asked.size(), 7u);
  const std::set<std::string> keys = {recorder.asked[2].key, recorder.asked[3].key, recorder.asked[4].key};
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_EQ(recorder.asked[2].group, recorder.asked[4].group);
  EXPECT_NE(recorder.asked[1].group, recorder.asked[2].group);
  EXPECT_NE(recorder.asked[4].group, recorder.asked[5].group);
  ASSERT_EQ(answers->asked.size(), 3u);
  ASSERT_EQ(answers->asked[1].size(), 3u);
  EXPECT_EQ(answers->asked[1][2].latency_ns, 1004);
  EXPECT_EQ(answers->asked[2][0].latency_ns, 1005);

  three.ways.resize(1);
  EXPECT_FALSE(oracle.Compare(maker_.graph(), {three}, {}).ok()) << "one way is nothing to compare";
}

}  // namespace
}  // namespace fusion
