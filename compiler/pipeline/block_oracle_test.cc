#include "compiler/pipeline/block_oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/pipeline/testing/run_block.h"

namespace fusion {
namespace {

class CountingOracle : public LatencyOracle {
 public:
  explicit CountingOracle(int devices) : devices_(devices) {}
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler&) override {
    batches.push_back(questions.size());
    return std::vector<LatencyAnswer>(questions.size(), LatencyAnswer{1000, LatencySource::kMeasured});
  }
  int Devices() const override { return devices_; }
  std::vector<size_t> batches;

 private:
  const int devices_;
};

// An oracle over a graph, for AVX-512, with so many devices to measure on.
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
  // Twenty operators of different shapes, and the first of them once more.
  BlockOracleTest() {
    for (int i = 1; i <= 20; ++i) maker_.Out(maker_.Op("Relu", {maker_.In({8, 16 * i})}));
    maker_.Out(maker_.Op("Relu", {maker_.In({8, 16})}));
  }
  static std::vector<std::vector<ecg::NodeId>> Nodes(int from, int to) {
    std::vector<std::vector<ecg::NodeId>> blocks;
    for (int id = from; id < to; ++id) blocks.push_back({id});
    return blocks;
  }
  // How many of `maybe` were answered, and what was measured for the batch.
  std::pair<int, size_t> Ask(int devices, const std::vector<std::vector<ecg::NodeId>>& blocks,
                             const std::vector<std::vector<ecg::NodeId>>& maybe) {
    Started several(maker_.graph(), devices);
    auto answers = several.oracle.Latency(maker_.graph(), blocks, maybe);
    EXPECT_TRUE(answers.ok()) << answers.status();
    EXPECT_EQ(answers->asked.size(), blocks.size());
    EXPECT_EQ(answers->maybe.size(), maybe.size());
    int answered = 0;
    for (const auto& answer : answers->maybe) answered += answer.has_value() ? 1 : 0;
    EXPECT_EQ(several.devices.batches.size(), 1);
    return {answered, several.devices.batches[0]};
  }
  testing::GraphMaker maker_;
};

TEST_F(BlockOracleTest, IdleDevicesAnswerWhatMayBeAskedNext) {
  // Five questions keep four devices busy for two turns: the idle part of the second, and a third.
  EXPECT_EQ(Ask(4, Nodes(0, 5), Nodes(5, 20)), std::pair(7, size_t{12}));
  EXPECT_EQ(Ask(4, Nodes(0, 4), Nodes(4, 20)), std::pair(4, size_t{8}));
  EXPECT_EQ(Ask(4, Nodes(0, 5), Nodes(5, 7)), std::pair(2, size_t{7}));
  // One device has no idle part.
  EXPECT_EQ(Ask(1, Nodes(0, 5), Nodes(5, 20)), std::pair(0, size_t{5}));
}

TEST_F(BlockOracleTest, EqualKernelsAreOneQuestionAndCostNoTurn) {
  EXPECT_EQ(Ask(1, Nodes(0, 5), Nodes(20, 21)), std::pair(1, size_t{5}));
}

// Two layers of one structure whose products cannot be one kernel with what is before them.
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
  EXPECT_THAT(oracle.CanSchedule(maker.graph(), nodes).message(), ::testing::HasSubstr("of code exceeds the cache"));
  EXPECT_TRUE(oracle.CanSchedule(maker.graph(), {nodes.begin(), nodes.begin() + 100}).ok());
}

}  // namespace
}  // namespace fusion
