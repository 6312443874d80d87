#include "compiler/movement/in_place.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

// out[i] = f(in[read]) over 4 tasks of 16.
Kernel Map(const te::Index& read, const te::Index& write, te::Axis task, te::Axis i) {
  Kernel kernel;
  kernel.buffers.resize(2);
  kernel.buffers[0].elements = kernel.buffers[1].elements = 64;
  Step step;
  step.loops = {{i, std::nullopt}};
  step.body = {te::Call(te::Op::kExp, {te::Load(0, DType::kF32, {read})})};
  step.stores = {{1, write}};
  step.store_types = {DType::kF32};
  kernel.phases = {{{task}, {step}}};
  kernel.next_axis = 4;
  return kernel;
}

const te::Axis kTask{0, 4}, kI{1, 16};
const te::Index kHere = te::Index(kTask) * 16 + te::Index(kI);

TEST(InPlace, AnElementwiseResultMayReplaceItsOperand) {
  const std::vector<InPlacePair> pairs = InPlacePairs(Map(kHere, kHere, kTask, kI));
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].out, 1);
  EXPECT_EQ(pairs[0].in, 0);
}

TEST(InPlace, NotWhereAnotherElementIsRead) {
  EXPECT_TRUE(InPlacePairs(Map(te::Index(63) - kHere, kHere, kTask, kI)).empty());
  EXPECT_TRUE(InPlacePairs(Map(te::Index(kI) * 4 + te::Index(kTask), kHere, kTask, kI)).empty());
}

TEST(InPlace, NotWhereAnElementIsStoredTwice) {
  const te::Index overlapping = te::Index(kTask) * 15 + te::Index(kI);
  EXPECT_TRUE(InPlacePairs(Map(overlapping, overlapping, kTask, kI)).empty());
  EXPECT_TRUE(InPlacePairs(Map(te::Index(kI), te::Index(kI), kTask, kI)).empty());  // every task stores here
}

// One of two alternatives runs in each task, so their results may replace an operand that both read at its place.
TEST(InPlace, AlternativesMakeOneResult) {
  Kernel kernel = Map(kHere, kHere, kTask, kI);
  std::vector<Step>& steps = kernel.phases[0].steps;
  steps.push_back(steps[0]);
  EXPECT_TRUE(InPlacePairs(kernel).empty()) << "the second step would read results of the first";
  kernel.buffers.push_back({Scope::kBlock, DType::kF32, 1});
  steps[0].runs_if = Condition{2, true};
  steps[1].runs_if = Condition{2, false};
  EXPECT_EQ(InPlacePairs(kernel).size(), 1u);
  steps[1].body = {te::Load(0, DType::kF32, {te::Index(63) - kHere})};
  EXPECT_TRUE(InPlacePairs(kernel).empty()) << "an alternative reads another element";
  steps[1] = steps[0];
  EXPECT_TRUE(InPlacePairs(kernel).empty()) << "both run";
}

TEST(InPlace, NotAnotherTypeSizeOrAConstant) {
  Kernel kernel = Map(kHere, kHere, kTask, kI);
  kernel.buffers[0].elements = 65;
  EXPECT_TRUE(InPlacePairs(kernel).empty());
  kernel = Map(kHere, kHere, kTask, kI);
  kernel.buffers[0].dtype = DType::kF16;
  EXPECT_TRUE(InPlacePairs(kernel).empty());
  kernel = Map(kHere, kHere, kTask, kI);
  kernel.buffers[0].is_constant = true;
  EXPECT_TRUE(InPlacePairs(kernel).empty());
}

// sum over k of x[i, k], plus r[i].
TEST(InPlace, AnOperandOfTheEpilogueButNotOfTheReduction) {
  const te::Axis k{2, 8};
  Kernel kernel;
  kernel.buffers.resize(3);
  kernel.buffers[0].elements = 64 * 8;
  kernel.buffers[1].elements = kernel.buffers[2].elements = 64;
  Step step;
  step.loops = {{kI, std::nullopt}};
  step.reduction.emplace();
  step.reduction->axes = {k};
  step.body = {te::Load(0, DType::kF32, {kHere * 8 + te::Index(k)})};
  step.then = {te::Acc(0, DType::kF32) + te::Load(1, DType::kF32, {kHere})};
  step.stores = {{2, kHere}};
  step.store_types = {DType::kF32};
  kernel.phases = {{{kTask}, {step}}};
  const std::vector<InPlacePair> pairs = InPlacePairs(kernel);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].in, 1);
  kernel.phases[0].steps[0].body[0] = kernel.phases[0].steps[0].body[0] * te::Load(1, DType::kF32, {kHere});
  EXPECT_TRUE(InPlacePairs(kernel).empty());
}

TEST(InPlace, NotWhereAnotherStepReadsItToo) {
  Kernel kernel = Map(kHere, kHere, kTask, kI);
  kernel.buffers.push_back(kernel.buffers[1]);
  Step second = kernel.phases[0].steps[0];
  second.stores[0].buffer = 2;
  kernel.phases[0].steps.push_back(second);
  EXPECT_TRUE(InPlacePairs(kernel).empty());
}

}  // namespace
}  // namespace fusion::movement
